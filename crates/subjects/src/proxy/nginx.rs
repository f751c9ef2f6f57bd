//! nginx as a proxy with nothing said but where the server is: HTTP/1.0 towards it, without upgrades, and buffering.

use crate::process::{Process, describe};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time until it listens.
const READY_WITHIN: Duration = Duration::from_secs(10);
/// Time for it to end after it was asked to.
const STOP_WITHIN: Duration = Duration::from_secs(2);
/// How often its port is tried.
const WATCH: Duration = Duration::from_millis(10);
/// Ports tried, since somebody else may take one that was free.
const TRIES_MAX: u32 = 5;
/// Where Debian installs it: no place of an ordinary user's PATH.
const USUAL_PLACE: &str = "/usr/sbin/nginx";

/// A running nginx, and its folder.
pub struct Nginx {
    process: Process,
    folder: PathBuf,
}

/// The program; `None` where it is not installed.
pub fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).map(|folder| folder.join("nginx")).chain([PathBuf::from(USUAL_PLACE)]);
    places.into_iter().find(|program| program.is_file())
}

impl Nginx {
    /// Starts it, and waits until it listens.
    ///
    /// # Errors
    /// As a sentence.
    pub fn start(
        server: SocketAddr,
        certificate: Option<(&Path, &Path)>,
        folder: &Path,
        cores: &[usize],
    ) -> Result<(SocketAddr, Self), String> {
        let failed = |error: std::io::Error| format!("nginx cannot use {}: {error}", folder.display());
        fs::create_dir_all(folder).map_err(failed)?;
        // It changes to its folder, where a path that is not whole means nothing.
        let folder = folder.canonicalize().map_err(failed)?;
        let program = find().ok_or("nginx is not installed: it is the package nginx-light on Debian")?;
        let mut why = String::new();
        for _ in 0..TRIES_MAX {
            let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|free| free.local_addr());
            let address = free.map_err(|error| format!("no port is free: {error}"))?;
            let text = configuration(&folder, address, server, certificate)?;
            match Self::try_at(address, &program, &folder, &text, cores) {
                Ok(started) => return Ok(started),
                Err(error) => why = error,
            }
        }
        Err(format!("nginx does not start: {why}"))
    }

    fn try_at(
        address: SocketAddr,
        program: &Path,
        folder: &Path,
        text: &str,
        cores: &[usize],
    ) -> Result<(SocketAddr, Self), String> {
        let failed = |error: std::io::Error| error.to_string();
        let (file, log) = (folder.join("nginx.conf"), folder.join("error.log"));
        fs::write(&file, text).map_err(failed)?;
        let mut command = Command::new(program);
        command.arg("-p").arg(folder).arg("-e").arg(&log).arg("-c").arg(&file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = Process::start(&mut command, cores).map_err(failed)?;
        let deadline = Instant::now() + READY_WITHIN;
        while Instant::now() < deadline {
            if let Some(status) = process.ended() {
                let said = fs::read_to_string(&log).unwrap_or_default();
                return Err(format!("it ended with {}: {}", describe(status), said.trim()));
            }
            if TcpStream::connect(address).is_ok() {
                return Ok((address, Self { process, folder: folder.to_owned() }));
            }
            std::thread::sleep(WATCH);
        }
        Err(format!("nobody took a connection at {address} within {READY_WITHIN:?}"))
    }

    /// Ends it, and removes its folder.
    pub fn stop(self) {
        self.process.stop(STOP_WITHIN);
        // A folder that stays costs nothing but a look.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// What it is told. Nothing of it changes how it treats requests.
fn configuration(
    folder: &Path,
    address: SocketAddr,
    server: SocketAddr,
    certificate: Option<(&Path, &Path)>,
) -> Result<String, String> {
    let folder = folder
        .to_str()
        .filter(|text| !text.contains(['"', ';', '{', '$']))
        .ok_or_else(|| format!("nginx cannot be given the folder {}: choose another with --out", folder.display()))?;
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|what| format!("  {what}_temp_path \"{folder}/{what}\";\n"))
        .concat();
    let whole = |path: &Path| path.canonicalize().map_err(|error| format!("{}: {error}", path.display()));
    let (speaks, certificate) = match certificate {
        None => ("", String::new()),
        Some((chain, key)) => {
            let (chain, key) = (whole(chain)?, whole(key)?);
            let lines = format!(
                "    ssl_certificate \"{}\";\n    ssl_certificate_key \"{}\";\n",
                chain.display(),
                key.display()
            );
            (" ssl http2", lines)
        }
    };
    Ok(format!(
        "daemon off;\nmaster_process off;\npid \"{folder}/nginx.pid\";\nevents {{ worker_connections 4096; }}\nhttp {{\n  \
         access_log off;\n{temporary}  server {{\n    listen {address}{speaks};\n{certificate}    location / {{ proxy_pass \
         http://{server}; }}\n  }}\n}}\n"
    ))
}
