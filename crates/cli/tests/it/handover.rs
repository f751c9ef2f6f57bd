//! `pushlab serve` that takes over and is taken over from, as processes.

use crate::meeting::Meeting;
use pushlab_os::folder::TemporaryFolder;
use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _, pipe};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

const PUSHLAB: &str = env!("CARGO_BIN_EXE_pushlab");
/// Far more than anything takes.
const PATIENCE: Duration = Duration::from_secs(20);

struct Server {
    child: Child,
    address: String,
    says: BufReader<ChildStderr>,
}

impl Server {
    fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let says = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: serde_json::Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        let address = ready["listening"].as_str().unwrap().to_owned();
        Self { child, address, says }
    }

    fn at(path: &Path, address: &str) -> Self {
        let mut command = Command::new(PUSHLAB);
        command.args(["serve", "--no-pages", "--json", "--drain-window", "10s", "--listen", address, "--handover"]);
        command.arg(path);
        Self::of(command)
    }

    /// Waits until it has said a line that contains this.
    fn hears(&mut self, what: &str) {
        let mut line = String::new();
        while !line.contains(what) {
            line.clear();
            assert!(self.says.read_line(&mut line).unwrap() > 0, "it has never said {what:?}");
        }
    }

    fn ends_with_success(mut self) {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().unwrap() {
                assert!(status.success(), "{status}");
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("it does not end");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn connect(address: &str) -> TcpStream {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn publish(address: &str, data: &str) -> u64 {
    let mut socket = connect(address);
    let head = "POST /publish?channel=a HTTP/1.0\r\nHost: localhost\r\nContent-Length: ";
    write!(socket, "{head}{}\r\n\r\n{data}", data.len()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let cursor = answer.split("[\"cursor\",\"").nth(1).unwrap_or_else(|| panic!("{answer}"));
    cursor.split(['.', '"']).nth(1).unwrap().parse().unwrap()
}

/// Lines of a stream after a cursor.
fn stream(address: &str, after: &str) -> impl Iterator<Item = String> + use<> {
    let mut socket = connect(address);
    write!(socket, "GET /stream?channel=a&v=2&after={after} HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    let lines = BufReader::new(socket).lines().map(Result::unwrap);
    lines.skip_while(|line| !line.is_empty()).skip(1).filter(|line| !line.starts_with("[\"server\""))
}

/// Whoever was killed may have published what nobody else has heard of: the old server serves again, and tells of a gap.
#[test]
fn a_successor_that_is_killed_leaves_the_old_server_serving() {
    let path = Meeting::new("killed");
    let mut old = Server::at(&path, "127.0.0.1:0");
    let address = old.address.clone();
    let mut told = stream(&address, "");
    let start = told.next().unwrap();
    let epoch = start.split(['"', '.']).nth(3).unwrap().to_owned();
    assert_eq!(publish(&address, "1"), 1);
    let new = Server::at(&path, &address);
    assert_eq!(new.address, address);
    old.hears("another process has taken over");
    // This reaches the new one, whose publications the subscribers of the old one get.
    assert_eq!(publish(&address, "2"), 2);
    let message = |offset: u64| format!("[\"msg\",\"a\",\"{epoch}.{offset}\",{offset}]");
    assert_eq!([told.next(), told.next()], [Some(message(1)), Some(message(2))]);
    drop(new);
    old.hears("this one serves again");
    assert!(told.next().unwrap().starts_with("[\"reconnect\","));
    assert_eq!(told.next(), None);
    let again = publish(&address, "3");
    assert!(again > 1 << 32, "{again}");
    let mut resumed = stream(&address, &format!("{epoch}.2"));
    let gap = resumed.next().unwrap();
    assert_eq!(gap, format!("[\"gap\",\"{epoch}.2\",\"{epoch}.{}\"]", again - 1));
    drop(resumed);
    // The next one takes over as if nothing had been.
    let next = Server::at(&path, &address);
    old.ends_with_success();
    assert_eq!(publish(&address, "4"), again + 1);
    drop(next);
}

/// Somebody else there would be asked for the place, and be given it.
#[test]
fn a_socket_in_a_folder_that_others_may_enter_is_refused() {
    let folder = TemporaryFolder::make("pushlab").unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(PUSHLAB);
    command.args(["serve", "--no-pages", "--json", "--listen", "127.0.0.1:0", "--handover"]);
    let (says, output) = pipe().unwrap();
    command.arg(folder.path().join("s")).stdout(output.try_clone().unwrap()).stderr(output);
    let (mut server, mut said) = (command.spawn().unwrap(), String::new());
    // One that has started says where, and goes on.
    BufReader::new(says).read_line(&mut said).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(said.contains("has mode 0755: it must be a folder of this process's user"), "{said}");
}

/// A connection that came before there was a process waits for it.
#[test]
fn sockets_of_a_service_manager_are_used() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut early = stream_of_one(&address);
    let mut command = Command::new("sh");
    let script = "exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" serve --no-pages --json --cores 2";
    command.args(["-c", script, PUSHLAB]).stdin(Stdio::from(OwnedFd::from(listener)));
    let server = Server::of(command);
    assert_eq!(server.address, address);
    assert!(early().starts_with("HTTP/1.1 200 "));
}

/// Asks at once; the answer is read when it is asked for.
fn stream_of_one(address: &str) -> impl FnMut() -> String + use<> {
    let mut socket = connect(address);
    write!(socket, "GET /healthz HTTP/1.0\r\n\r\n").unwrap();
    move || {
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    }
}
