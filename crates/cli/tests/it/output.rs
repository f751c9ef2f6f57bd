//! What cannot be printed, and where else output goes.

use crate::campaign::{Place, signal, wait_for};
use crate::transfer::Table;
use std::fs::{self, File, Permissions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _, pipe};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
use std::process::{Command, Output, Stdio};

/// A result `drill`.
fn stored(place: &Place) {
    Table::new("drill").runs("websocket", "cpu", "%", &[1.0, 2.0, 3.0]).import(place, "drill");
}

fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

/// Runs a command whose output, or that and its errors, lead somewhere.
fn printing_to(place: &Place, arguments: &[&str], to: impl Into<Stdio>, errors: Stdio) -> (Option<i32>, String) {
    let Output { status, stderr, .. } =
        place.pushlab(arguments).stdout(to).stderr(errors).spawn().unwrap().wait_with_output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn what_cannot_be_printed_is_told_with_its_exit_code() {
    let place = Place::new("unprintable");
    stored(&place);
    for arguments in [
        &["list"][..],
        &["list", "--json"],
        &["runs"],
        &["show", "drill"],
        &["report", "drill"],
        &["report", "drill", "--summary", "-", "--json"],
        &["export", "drill", "--format", "csv"],
        &["export", "drill", "--format", "json"],
        &["export", "drill", "--format", "parquet", "--output", "-"],
        &["completions", "bash"],
        &["--help"],
        &["serve", "--version"],
    ] {
        let (code, error) = printing_to(&place, arguments, full(), Stdio::piped());
        assert_eq!(code, Some(6), "{arguments:?}: {error}");
        assert_eq!(error.matches("error: ").count(), 1, "{arguments:?}: {error}");
        assert!(error.contains("cannot write to standard output: No space left"), "{arguments:?}: {error}");
        // Nobody can be told, and the code says it still.
        assert_eq!(printing_to(&place, arguments, full(), full().into()).0, Some(6), "{arguments:?}");
        // Whoever reads no further has what they wanted.
        let (reader, closed) = pipe().unwrap();
        drop(reader);
        let (code, error) = printing_to(&place, arguments, closed, Stdio::piped());
        assert_eq!((code, error.as_str()), (Some(0), ""), "{arguments:?}");
    }
    let (code, _) = printing_to(&place, &["show", "other"], full(), full().into());
    assert_eq!(code, Some(1), "what goes wrong before counts");
    // What was to be done is done.
    assert_eq!(printing_to(&place, &["rm", "drill"], full(), Stdio::piped()).0, Some(6));
    assert!(place.rows().is_empty());
}

/// Its address is one that was free a moment ago: it cannot say which it took.
#[test]
fn a_server_goes_on_where_nobody_hears_it() {
    let place = Place::new("unheard");
    for (json, command) in [("--json", "serve"), ("--json", "backend"), ("--open", "serve")] {
        let mut tries = 0;
        let mut server = loop {
            let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            let mut server = place.pushlab(&[command, "--listen", &address.to_string(), json]);
            let mut server = server.stdout(full()).stderr(full()).spawn().unwrap();
            let is_up = wait_for("the server", || match server.try_wait().unwrap() {
                Some(_) => Some(false),
                None => TcpStream::connect(address).is_ok().then_some(true),
            });
            if is_up {
                break server;
            }
            tries += 1;
            assert!(tries < 5, "{command} ends");
        };
        // Listening it says where, and only then it heeds signals.
        signal(server.id(), "INT");
        assert_eq!(server.wait().unwrap().code(), Some(0), "{command}");
    }
}

#[test]
fn an_output_that_is_named_is_followed_and_keeps_its_mode() {
    let place = Place::new("named-outputs");
    stored(&place);
    let expected = place.prints(&["export", "drill", "--format", "csv"]);
    let read = |name: &str| fs::read_to_string(place.path(name)).unwrap();
    let export = |to: &str| place.prints(&["export", "drill", "--format", "csv", "--output", to]);
    assert_eq!(export("-"), expected);
    assert!(!place.path("-").exists());

    fs::write(place.path("kept.csv"), "old").unwrap();
    fs::set_permissions(place.path("kept.csv"), Permissions::from_mode(0o640)).unwrap();
    symlink("kept.csv", place.path("link.csv")).unwrap();
    export("link.csv");
    assert!(place.path("link.csv").is_symlink());
    assert_eq!(read("kept.csv"), expected);
    assert_eq!(fs::metadata(place.path("kept.csv")).unwrap().permissions().mode() & 0o777, 0o640);

    assert!(Command::new("mkfifo").arg(place.path("pipe")).status().unwrap().success());
    let reader = fs::OpenOptions::new().read(true).write(true).open(place.path("pipe")).unwrap();
    export("pipe");
    assert!(fs::symlink_metadata(place.path("pipe")).unwrap().file_type().is_fifo());
    let mut first = String::new();
    BufReader::new(reader).read_line(&mut first).unwrap();
    assert_eq!(Some(first.trim_end()), expected.lines().next());

    let (code, error) = place.fails(&["export", "drill", "--format", "csv", "--output", "/dev/full"]);
    assert!(code == 6 && error.contains("/dev/full"), "{code} {error}");
    assert!(fs::metadata("/dev/full").unwrap().file_type().is_char_device());
    assert!(place.prints(&["report", "drill", "--summary", "-", "--json"]).starts_with("## "));
    assert_eq!(export("GROSS.CSV"), "");
    let output = place.run(&["export", "drill", "--output", "GROSS.CSV"]);
    assert_eq!((output.status.code(), read("GROSS.CSV")), (Some(0), expected));
    assert!(place.prints(&["import", "GROSS.CSV"]).contains("GROSS"));
}

#[test]
fn the_program_is_called_as_it_is_typed() {
    let place = Place::new("called");
    let version = concat!("pushlab ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(place.prints(&["--version"]), version);
    assert!(place.prints(&["--help"]).contains("Usage: pushlab <COMMAND>"));
}

#[test]
fn switches_are_set_in_the_environment_as_people_set_them() {
    let place = Place::new("switches");
    for (value, pages) in [("1", "404"), ("yes", "404"), ("true", "404"), ("0", "200"), ("no", "200"), ("", "200")] {
        let mut server = place.pushlab(&["serve", "--listen", "127.0.0.1:0", "--json"]);
        let mut server = server.env("PUSHLAB_NO_PAGES", value).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: serde_json::Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{value:?}: {line}"));
        let mut stream = TcpStream::connect(said["listening"].as_str().unwrap()).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        server.kill().unwrap();
        server.wait().unwrap();
        assert_eq!(answer.split(' ').nth(1), Some(pages), "{value:?}");
    }
    let serve = |variable: &str, value: &str| {
        let output = place.pushlab(&["serve", "--cores", "0"]).env(variable, value).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for variable in ["PUSHLAB_NO_PAGES", "PUSHLAB_OPEN"] {
        let (code, error) = serve(variable, "maybe");
        assert!(code == Some(2) && error.contains("1 or 0, yes or no, true or false"), "{error}");
        let (code, error) = serve(variable, "YES");
        assert!(code == Some(2) && error.contains("--cores"), "{error}");
    }
}
