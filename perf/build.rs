//! Puts what a report must say about its own origin into the binary: commit, profile, flags.

use std::process::Command;

fn main() {
    let commit = git(&["rev-parse", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    let dirty = git(&["status", "--porcelain", "--untracked-files=no"])
        .is_some_and(|changes| !changes.is_empty());
    println!(
        "cargo:rustc-env=CORELOG_PERF_COMMIT={commit}{}",
        if dirty { "-dirty" } else { "" }
    );
    for (name, from) in [
        ("PROFILE", "PROFILE"),
        ("OPT_LEVEL", "OPT_LEVEL"),
        ("TARGET", "TARGET"),
        ("RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"),
    ] {
        let value = std::env::var(from).unwrap_or_default().replace('\x1f', " ");
        println!("cargo:rustc-env=CORELOG_PERF_{name}={value}");
    }
    for path in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", path]) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    println!("cargo:rerun-if-changed=src");
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(arguments)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
