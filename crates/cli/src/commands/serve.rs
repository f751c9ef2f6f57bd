//! `pushlab serve`: the server.

use super::access::AccessFile;
use super::pages::{self, DemoArgs, GuestArgs, SiteArgs, TlsArgs};
use crate::failure::usage;
use crate::units;
use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use pushlab_console::Console;
use pushlab_os::descriptors;
use pushlab_server::{Config, Feed, Handover, Happened, Io, Limits, Policy, Server, Site, Tick};
use pushlab_subjects::running::{NO_PAGES, OPEN};
use pushlab_wire::channel::Channel;
use pushlab_wire::codes::ExitCode;
use pushlab_workload::roles::SERVER_OWN_DESCRIPTORS;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use url::{Position, Url};

/// Serve every transport on one port.
#[derive(Debug, Args)]
#[command(
    after_help = "Paths: /ws /sse /stream /poll /publish /echo /healthz /stats /metrics; console and demos are pages from / on. SIGTERM or Ctrl-C stops it gracefully."
)]
pub struct ServeArgs {
    /// Address of all transports; port 0 takes a free one.
    #[arg(long, value_parser = units::address, default_value = "127.0.0.1:8000", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Event loops.
    #[arg(long, default_value_t = 1, value_name = "N")]
    cores: usize,
    /// What to do with a subscriber that does not keep up.
    #[arg(long, value_enum, default_value_t = PolicyArg::Close)]
    policy: PolicyArg,
    /// Back end to publish from, ws://HOST:PORT/PATH: every text message is published.
    #[arg(long, value_name = "URL")]
    feed: Option<String>,
    /// Channel of the feed's publications.
    #[arg(long, default_value = "feed", value_name = "CHANNEL")]
    feed_channel: String,
    /// Publish {"id":n,"msg":"…"} at this interval.
    #[arg(long, value_parser = humantime::parse_duration, value_name = "DURATION")]
    tick: Option<Duration>,
    /// Channel of the ticks.
    #[arg(long, default_value = "tick", value_name = "CHANNEL")]
    tick_channel: String,
    /// For measuring: overwrite the place "!.........!" in publications and echoes with when they were received, which
    /// splits latency into the way up and the way down.
    #[arg(long)]
    mark_receipts: bool,
    /// How publications reach large groups of subscribers [default: uring where the kernel and the sandbox allow it].
    #[arg(long, value_enum, value_name = "ENGINE")]
    io: Option<IoArg>,
    #[command(flatten)]
    tls: TlsArgs,
    /// Accept WebSockets at /echo and send every message back unchanged: for testing clients, and this server.
    #[arg(long)]
    echo: bool,
    /// Turn HTTP/2 off.
    #[arg(long)]
    no_http2: bool,
    /// Compress messages and replies of at least this size for clients that ask for it, by permessage-deflate or gzip
    /// [default: off].
    #[arg(long, value_name = "BYTES", value_parser = units::bytes)]
    compression_from: Option<usize>,
    /// For measuring: Nagle's algorithm on connections, which holds a small segment back while another is
    /// unacknowledged.
    #[arg(long)]
    nagle: bool,
    /// For measuring: write calls for one event or reply to a poll; with 2 the transport's framing is written separately.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=2))]
    writes_per_event: u8,
    /// Serve the transports alone: no console, no demos. The default with --access.
    #[arg(long, env = NO_PAGES, value_parser = units::switch)]
    no_pages: bool,
    /// With --access, serve the console and the demos too: to everybody, whatever the rules say.
    #[arg(long, requires = "access")]
    pages: bool,
    /// The results database that the console shows to everybody who reaches the server; none by default.
    #[arg(long, value_name = "FILE", env = "PUSHLAB_STORE")]
    store: Option<PathBuf>,
    #[command(flatten)]
    site: SiteArgs,
    #[command(flatten)]
    guests: GuestArgs,
    /// Say who may subscribe and publish: a file with rules, and the keys with which tokens are checked
    /// (schema/access.schema.json; try it with `pushlab access check`). On SIGHUP it is read again.
    #[arg(long, value_name = "FILE", env = "PUSHLAB_ACCESS")]
    access: Option<PathBuf>,
    /// Serve whoever reaches the address: without this or --access, the server listens only on loopback addresses.
    #[arg(long, env = OPEN, value_parser = units::switch)]
    open: bool,
    #[command(flatten)]
    demos: DemoArgs,
    /// Take over from the server that listens at this Unix socket, if one does: its connections, its history, and
    /// whoever connects meanwhile. Then listen there for the next one. The socket's folder must belong to this user and
    /// have mode 0700.
    #[arg(long, value_name = "SOCKET")]
    handover: Option<PathBuf>,
    /// Print the address as one line of JSON when ready.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    limits: LimitArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PolicyArg {
    /// Close the connection; the client resumes with its cursor.
    Close,
    /// Drop the oldest messages and report a gap.
    DropOldest,
    /// Keep only the latest message of each channel.
    Conflate,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum IoArg {
    /// One write for each subscriber.
    Write,
    /// Up to 1,024 subscribers in one system call (io_uring).
    Uring,
}

macro_rules! limit_args {
    ($($(#[$doc:meta])* $name:ident / $field:ident: $type:ty $(=> $parser:path)?),* $(,)?) => {
        /// Limits; each has a default that fits most uses.
        #[derive(Debug, Args)]
        #[command(next_help_heading = "Limits")]
        struct LimitArgs {
            $($(#[$doc])* #[arg(long, value_name = "LIMIT" $(, value_parser = $parser)?)] $name: Option<$type>,)*
        }

        impl LimitArgs {
            fn apply(&self, limits: &mut Limits) {
                $(if let Some(value) = self.$name { limits.$field = value.into(); })*
            }
        }
    };
}

limit_args! {
    /// Connections in all [default: what the descriptor limit allows].
    max_connections / max_connections: usize,
    /// Concurrent streams of an HTTP/2 connection; each also counts towards --max-connections [default: 100].
    max_streams / max_streams_per_connection: u32,
    /// Bytes of a request's head [default: 16KiB].
    max_head_bytes / max_head_bytes: usize => units::bytes,
    /// Bytes of a request's body [default: 64KiB].
    max_body_bytes / max_body_bytes: usize => units::message_bytes,
    /// Bytes of a WebSocket message [default: 64KiB].
    max_message_bytes / max_message_bytes: usize => units::message_bytes,
    /// Messages of history in a channel [default: 10000].
    history_messages / max_history_messages: usize,
    /// Bytes of history in a channel [default: 8MiB].
    history_bytes / max_history_bytes: usize => units::bytes,
    /// Bytes of history in all channels [default: 256MiB].
    history_total_bytes / max_history_total_bytes: usize => units::bytes,
    /// Age of history [default: 5m].
    history_age / max_history_age: Duration => humantime::parse_duration,
    /// Messages queued for a slow subscriber [default: 4096].
    queue_messages / max_queue_messages: usize,
    /// Bytes queued for a slow subscriber [default: 1MiB].
    queue_bytes / max_queue_bytes: usize => units::bytes,
    /// Bytes kept for all peers together, outside history [default: 256MiB].
    queue_total_bytes / max_queued_total_bytes: usize => units::bytes,
    /// Bytes of the kernel's send buffer of a connection [default: 256KiB].
    send_buffer / max_send_buffer_bytes: usize => units::bytes,
    /// Bytes of the kernel's receive buffer of a connection [default: the kernel's].
    receive_buffer / max_receive_buffer_bytes: usize => units::bytes,
    /// Longest time a poll is held [default: 60s].
    poll_wait / max_poll_wait: Duration => humantime::parse_duration,
    /// Time for a request to arrive in full [default: 10s].
    head_timeout / head_timeout: Duration => humantime::parse_duration,
    /// Time between two requests of a connection [default: 75s].
    idle_timeout / idle_timeout: Duration => humantime::parse_duration,
    /// Time between two heartbeats; a WebSocket that is silent for two is closed [default: 25s].
    heartbeat / heartbeat: Duration => humantime::parse_duration,
    /// Time without progress on a connection with something queued [default: 30s].
    write_timeout / write_timeout: Duration => humantime::parse_duration,
    /// Time for connections to end after a stop [default: 10s].
    drain_timeout / drain_timeout: Duration => humantime::parse_duration,
    /// When the server stops, clients are told to come back spread over this time [default: chosen from their number and
    /// the connect rate].
    drain_window / drain_window: Duration => humantime::parse_duration,
}

pub fn run(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    // The variable may also say that there are to be pages, so that its presence alone is no conflict.
    if args.pages && args.no_pages {
        return Err(usage("--pages cannot be used with --no-pages"));
    }
    args.tls.block_signals(args.access.is_some());
    let mut config = config(args)?;
    let is_loopback = config.listen.ip().is_loopback();
    config.site = Site { guests: args.guests.guests(), ..args.site.site(is_loopback) };
    let access = match &args.access {
        None => None,
        Some(path) => {
            let file = AccessFile::open(path, &config.site.guests)?;
            let live = file.serve()?;
            config.access = Some(Arc::clone(&live));
            Some((file, live))
        }
    };
    if !is_loopback && !args.open && access.is_none() {
        return Err(usage(format!(
            "others can reach {}, and whoever reaches it can publish and subscribe: give --access FILE to say who may do what, or --open \
             if everybody may; otherwise listen on 127.0.0.1, behind a proxy that decides who may do so",
            config.listen
        )));
    }
    config.trusted_proxies = args.site.proxies();
    if !args.no_pages && (args.pages || access.is_none()) {
        let console = Console::new(pushlab_console::Config {
            store: args.store.clone(),
            hides_results: args.store.is_none(),
            demos: DemoArgs::names(),
            origins: config.site.origins.clone(),
            ..pushlab_console::Config::default()
        })?;
        pages::give(&mut config, Arc::new(console), Some(&args.demos))?;
    }
    let server = Server::start(config)?;
    let address = server.address();
    if args.json {
        println!("{}", serde_json::json!({ "listening": address.to_string() }));
    } else {
        println!("listening on {}://{address} (Ctrl-C stops)", args.tls.scheme());
    }
    args.tls.attend(&server, access.as_ref());
    server.stop();
    server.join()?;
    Ok(ExitCode::Ok)
}

fn config(args: &ServeArgs) -> anyhow::Result<Config> {
    let mut config = Config::new(args.listen);
    config.listeners = descriptors::activated().context("LISTEN_FDS")?.into_iter().map(Arc::new).collect();
    if let Some(first) = config.listeners.first() {
        // The service manager decides, whatever --listen says.
        config.listen = TcpListener::from(first.try_clone()?).local_addr().context("a socket of LISTEN_FDS")?;
    }
    config.handover = args.handover.clone().map(|path| Handover { path, tell });
    if args.cores == 0 {
        return Err(usage("--cores must be at least 1"));
    }
    config.cores = args.cores;
    config.has_own_descriptor_tables = true;
    config.policy = match args.policy {
        PolicyArg::Close => Policy::Close,
        PolicyArg::DropOldest => Policy::DropOldest,
        PolicyArg::Conflate => Policy::Conflate,
    };
    config.io = args.io.map(|io| match io {
        IoArg::Write => Io::Write,
        IoArg::Uring => Io::Uring,
    });
    config.mark_receipts = args.mark_receipts;
    config.compression_from = args.compression_from;
    config.nagle = args.nagle;
    config.splits_events = args.writes_per_event == 2;
    config.tls = args.tls.files();
    config.speaks_http2 = !args.no_http2;
    config.echoes = args.echo;
    let own = usize::try_from(SERVER_OWN_DESCRIPTORS).expect("it is a hundred");
    let room = descriptor_limit().saturating_sub(own).max(1) * args.cores;
    config.limits.max_connections = room;
    args.limits.apply(&mut config.limits);
    if config.limits.max_connections > room {
        return Err(usage(format!(
            "--max-connections {}: the limit on descriptors (ulimit -n) allows {room}; raise it, or ask for fewer",
            config.limits.max_connections
        )));
    }
    if let Some(url) = &args.feed {
        config.feed = Some(feed(url, &args.feed_channel)?);
    }
    if let Some(interval) = args.tick {
        if interval.is_zero() {
            return Err(usage("--tick must be more than 0"));
        }
        config.tick = Some(Tick { interval, channel: channel(&args.tick_channel)? });
    }
    Ok(config)
}

fn tell(happened: &Happened) {
    eprintln!("{happened}");
}

fn feed(url: &str, channel_name: &str) -> anyhow::Result<Feed> {
    let parsed = Url::parse(url)
        .map_err(|error| usage(format!("--feed {url}: not a valid address; write ws://HOST:PORT/PATH: {error}")))?;
    if parsed.scheme() != "ws" {
        return Err(usage(format!("--feed {url}: only ws:// is supported")));
    }
    if !parsed[Position::BeforeUsername..Position::BeforeHost].is_empty() {
        return Err(usage(format!(
            "--feed {url}: a user name in the address is not supported: leave out what comes before the @"
        )));
    }
    let (host, target) =
        (&parsed[Position::BeforeHost..Position::AfterPort], &parsed[Position::BeforePath..Position::AfterQuery]);
    let addresses = parsed.socket_addrs(|| None).with_context(|| format!("--feed {url}: cannot resolve {host}"))?;
    if addresses.is_empty() {
        bail!("--feed {url}: {host} has no address");
    }
    Ok(Feed { addresses, host: host.to_owned(), target: target.to_owned(), channel: channel(channel_name)? })
}

fn channel(name: &str) -> anyhow::Result<Channel> {
    Channel::parse(name).map_err(|error| usage(format!("{name:?}: {error}")))
}

/// Descriptors a process (or an event loop with a table of its own) may hold.
fn descriptor_limit() -> usize {
    usize::try_from(pushlab_os::limits::descriptors().soft).unwrap_or(usize::MAX / 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_is_an_address_of_a_websocket() {
        for (url, address, host, target) in [
            ("ws://127.0.0.1:9000/", "127.0.0.1:9000", "127.0.0.1:9000", "/"),
            ("ws://127.0.0.1/prices?a=b", "127.0.0.1:80", "127.0.0.1", "/prices?a=b"),
            ("ws://[::1]", "[::1]:80", "[::1]", "/"),
        ] {
            let feed = feed(url, "feed").unwrap();
            assert_eq!((feed.addresses[0].to_string().as_str(), &*feed.host, &*feed.target), (address, host, target));
        }
        for (url, why) in [
            ("wss://127.0.0.1/", "only ws://"),
            ("127.0.0.1:9000", "write ws://"),
            ("ws://ada@127.0.0.1/", "user name"),
            ("ws://127.0.0.1:port/", "write ws://"),
        ] {
            let error = feed(url, "feed").unwrap_err().to_string();
            assert!(error.contains(why), "{url}: {error}");
        }
    }
}
