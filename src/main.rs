use std::process::ExitCode;

fn main() -> ExitCode {
    corelog::cli::main()
}
