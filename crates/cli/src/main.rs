fn main() -> std::process::ExitCode {
    floatgate::Cli::new().run()
}
