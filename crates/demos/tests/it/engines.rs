//! Real database servers of the tests' own, in folders of their own: started, killed and ended by their process ids.

use super::harness::PATIENCE;
use mysql::prelude::Queryable;
use pushlab_demos::auction::Auction;
use pushlab_os::child::Prepare as _;
use pushlab_os::process::{self, Signal};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio_postgres::NoTls;

/// Which database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Sqlite,
    Mariadb,
    Postgres,
}

/// A database, and its server if it has one. Dropping it ends both.
pub struct Engine {
    pub kind: Kind,
    /// Where its server listens.
    pub port: u16,
    folder: PathBuf,
    server: Option<Child>,
}

/// Both servers refuse to run as root, so root starts them as this user, `nobody` everywhere.
const NOBODY: u32 = 65_534;

/// Debian's packages of the servers.
const MARIADB: &str = "mariadb-server-core mariadb-client-core";
const POSTGRES: &str = "postgresql";

impl Engine {
    /// A database without tables.
    pub fn start(kind: Kind) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("pushlab-{kind:?}-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut engine = Self { kind, port, folder, server: None };
        if kind != Kind::Sqlite {
            if process::is_root() {
                chown(&engine.folder, Some(NOBODY), Some(NOBODY)).unwrap();
            }
            engine.make();
            engine.restart();
        }
        engine
    }

    /// Where it is.
    pub fn url(&self) -> String {
        self.url_through(self.port)
    }

    /// The same through another port.
    pub fn url_through(&self, port: u16) -> String {
        match self.kind {
            Kind::Sqlite => format!("sqlite:{}", self.path("house.db").display()),
            Kind::Mariadb => format!("mysql://pushlab:s%40cret@127.0.0.1:{port}/house"),
            Kind::Postgres => format!("postgres://pushlab:s%40cret@127.0.0.1:{port}/postgres"),
        }
    }

    /// The same over its Unix socket.
    pub fn socket_url(&self) -> String {
        match self.kind {
            Kind::Sqlite => self.url(),
            Kind::Mariadb => {
                format!("mysql://pushlab:s%40cret@localhost/house?socket={}", self.path("socket").display())
            }
            Kind::Postgres => {
                let folder = self.folder.display();
                format!("postgres://pushlab:s%40cret@/postgres?host={folder}&port={}", self.port)
            }
        }
    }

    /// Kills the server as a failing machine would.
    pub fn kill(&mut self) {
        if self.server.is_some() {
            // Children that a failed test left suspended would not notice.
            self.resume();
        }
        if let Some(mut server) = self.server.take() {
            server.kill().unwrap();
            server.wait().unwrap();
        }
    }

    /// Has the server hang: it keeps what it has and does nothing.
    pub fn suspend(&self) {
        self.signal(Signal::STOP);
    }

    /// Has it go on.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// To the server and, PostgreSQL having one for each connection, its children.
    fn signal(&self, signal: Signal) {
        let server = self.server.as_ref().expect("it runs").id();
        // None where the server has ended by itself.
        let children = fs::read_to_string(format!("/proc/{server}/task/{server}/children")).unwrap_or_default();
        let children = children.split_whitespace().map(|id| id.parse().unwrap());
        for id in std::iter::once(server).chain(children) {
            // A child that has just ended is not waited for yet, so its id is its own.
            let _ = process::send(id, signal);
        }
    }

    /// Starts the server that is not running, and waits until the house can be opened.
    pub fn restart(&mut self) {
        let deadline = Instant::now() + 3 * PATIENCE;
        loop {
            // After a kill PostgreSQL does not start before the last of its old processes has noticed.
            if self.server.as_mut().is_none_or(|server| server.try_wait().unwrap().is_some()) {
                self.server = Some(self.serve());
            }
            match Auction::open(&self.url()) {
                Ok(_) => return,
                Err(error) => assert!(Instant::now() < deadline, "{error}; its output: {}", self.output()),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Takes away all tables.
    pub fn empty(&self) {
        match self.kind {
            Kind::Sqlite => {
                for name in ["house.db", "house.db-wal", "house.db-shm"] {
                    // Those that are not there are gone already.
                    let _ = fs::remove_file(self.path(name));
                }
            }
            Kind::Mariadb => {
                let mut server = mysql::Conn::new(self.url().as_str()).unwrap();
                server.query_drop("DROP DATABASE house").unwrap();
                server.query_drop("CREATE DATABASE house CHARACTER SET latin1").unwrap();
            }
            Kind::Postgres => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    let (client, connection) = tokio_postgres::connect(&self.url(), NoTls).await.unwrap();
                    let work = tokio::spawn(connection);
                    let tables = "auction_house, auction_sessions, auction_bids, auction_items, auction_accounts";
                    client.batch_execute(&format!("DROP TABLE {tables}, auction_changes")).await.unwrap();
                    drop(client);
                    work.await.unwrap().unwrap();
                });
            }
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn output(&self) -> String {
        fs::read_to_string(self.path("output")).unwrap_or_default()
    }

    /// Makes the files of an empty database.
    fn make(&self) {
        let data = self.path("data");
        let mut command = match self.kind {
            Kind::Sqlite => return,
            Kind::Mariadb => {
                // The database's own character set is another one on purpose: tables must not depend on it.
                let first = "CREATE DATABASE IF NOT EXISTS house CHARACTER SET latin1;\n\
                    CREATE USER IF NOT EXISTS pushlab@'%' IDENTIFIED BY 's@cret';\n\
                    GRANT ALL ON house.* TO pushlab@'%';\n";
                self.write("first.sql", first);
                let mut command = self.command(&found("mariadb-install-db", MARIADB));
                command.args(["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"]);
                command.arg(format!("--datadir={}", data.display()));
                command
            }
            Kind::Postgres => {
                self.write("password", "s@cret\n");
                let mut command = self.command(&found("initdb", POSTGRES));
                command.args(["--no-sync", "-A", "scram-sha-256", "-U", "pushlab", "-E", "UTF8", "--locale=C"]);
                command.arg(format!("--pwfile={}", self.path("password").display())).arg("-D").arg(&data);
                command
            }
        };
        let done = command.status().unwrap();
        assert!(done.success(), "{:?}: {}", self.kind, self.output());
    }

    fn serve(&self) -> Child {
        let data = self.path("data");
        let mut command = match self.kind {
            Kind::Sqlite => unreachable!("it has no server"),
            Kind::Mariadb => {
                let mut command = self.command(&found("mariadbd", MARIADB));
                command.args(["--no-defaults", "--bind-address=127.0.0.1", "--skip-name-resolve"]);
                command.arg(format!("--datadir={}", data.display()));
                command.arg(format!("--socket={}", self.path("socket").display()));
                command.arg(format!("--init-file={}", self.path("first.sql").display()));
                command.arg(format!("--port={}", self.port));
                command
            }
            Kind::Postgres => {
                let mut command = self.command(&found("postgres", POSTGRES));
                command.arg("-D").arg(&data).args(["-p", &self.port.to_string()]);
                command.args(["-c", "listen_addresses=127.0.0.1", "-c"]);
                command.arg(format!("unix_socket_directories={}", self.folder.display()));
                command
            }
        };
        // Killed by the kernel should the test be, which then could not end it.
        command.end_with_parent(Signal::KILL);
        command.spawn().unwrap()
    }

    fn command(&self, program: &Path) -> Command {
        let output = fs::OpenOptions::new().append(true).create(true).open(self.path("output")).unwrap();
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output);
        command.current_dir(&self.folder).env("LC_ALL", "C").env("HOME", &self.folder);
        // Two of MariaDB's that are made at once would share the names of their temporary tables.
        command.env("TMPDIR", &self.folder);
        if process::is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        if process::is_root() {
            chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.kill();
        // Children of a killed PostgreSQL may still write while they notice.
        let deadline = Instant::now() + PATIENCE;
        while fs::remove_dir_all(&self.folder).is_err() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// A server's program: in the `PATH`, or where Debian puts those that are not.
fn found(name: &str, packages: &str) -> PathBuf {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = path.split(':').map(PathBuf::from).collect();
    folders.push("/usr/sbin".into());
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    folders.extend(versions.map(|version| version.path().join("bin")));
    let program = folders.into_iter().map(|folder| folder.join(name)).find(|program| program.is_file());
    program.unwrap_or_else(|| panic!("no {name}: the tests need its server; on Debian `apt-get install {packages}`"))
}
