//! The command `floatgate`.

fn main() -> std::process::ExitCode {
    floatgate::Cli::new().run()
}
