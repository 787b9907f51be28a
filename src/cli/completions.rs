use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::Shell;

use super::args::Arguments;
use super::exit::{CliError, Outcome};

/// Prints the completions, made from the same definitions as the arguments.
pub(super) fn run(shell: Shell) -> Result<Outcome, CliError> {
    let mut command = Arguments::command();
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    match io::stdout().write_all(&script) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CliError::Output(error)),
        _ => Ok(Outcome::Done),
    }
}
