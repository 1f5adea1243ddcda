//! Links the installed C library: `python -m shufflebounds config --static` prints the path of the static library.
use std::{env, path::Path, process::Command};

fn main() {
    let python = env::var("PYTHON").unwrap_or("python".into());
    let done = Command::new(python).args(["-m", "shufflebounds", "config", "--static"]).output().expect("no Python");
    assert!(done.status.success(), "shufflebounds is not installed: {}", String::from_utf8_lossy(&done.stderr));
    let flags = String::from_utf8(done.stdout).unwrap();
    let library = Path::new(flags.trim().trim_end_matches(" -lm"));
    println!("cargo:rustc-link-search=native={}", library.parent().unwrap().display());
    println!("cargo:rustc-link-lib=static=shufflebounds");
    println!("cargo:rustc-link-lib=m");
    println!("cargo:rerun-if-changed={}", library.display());
}
