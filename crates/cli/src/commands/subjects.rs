//! `pushlab subjects`: other people's servers.

use super::facts;
use crate::signals;
use crate::units::mebibytes;
use anyhow::Context as _;
use clap::{Args, Subcommand};
use pushlab_lab::this_program;
use pushlab_os::folder::TemporaryFolder;
use pushlab_subjects::catalogue::{Entry, catalogue};
use pushlab_subjects::check::{CheckOptions, Checked, Judged, PUBLICATIONS, check};
use pushlab_subjects::install::{Cache, InstallError, missing_tool};
use pushlab_subjects::manifest::{Endpoint, Fault};
use pushlab_subjects::running::{ForeignStart, Subject};
use pushlab_wire::codes::ExitCode;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

/// Other people's servers: list, install, check, start and remove them.
///
/// They are installed into $PUSHLAB_CACHE, or else `pushlab` in the user's cache folder. $PUSHLAB_SUBJECTS names a folder
/// of manifests to take in place of those that come with the program.
#[derive(Debug, Args)]
pub struct SubjectsArgs {
    #[command(subcommand)]
    command: SubjectsCommand,
}

#[derive(Debug, Subcommand)]
enum SubjectsCommand {
    /// List every subject, what it speaks, and whether it is installed.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Install subjects into the cache.
    Install(Which),
    /// Check that subjects deliver every broadcast once and in order, over every transport that they offer.
    Check(CheckArgs),
    /// Count and measure how friendly subjects are: lines, client size, packages, start-up, what arrives after a cut.
    Facts(FactsArgs),
    /// Start a subject and leave it running until Ctrl-C.
    Start {
        /// Its name.
        name: String,
    },
    /// Remove subjects from the cache.
    Rm(Which),
}

/// Which subjects.
#[derive(Debug, Args)]
struct Which {
    /// Their names.
    #[arg(required_unless_present = "all")]
    names: Vec<String>,
    /// All of them.
    #[arg(long, conflicts_with = "names")]
    all: bool,
}

#[derive(Debug, Args)]
struct CheckArgs {
    #[command(flatten)]
    which: Which,
    /// Check only the transports of this name, e.g. long-polling, or this entry of the manifest, e.g. htmlfile.
    #[arg(long, value_name = "NAME")]
    transport: Option<String>,
    /// Broadcasts to each of the 50 subscribers.
    #[arg(long, value_name = "N", default_value_t = PUBLICATIONS, value_parser = clap::value_parser!(u32).range(1..))]
    publications: u32,
    /// Write the first client's conversation to DIRECTORY/SUBJECT-TRANSPORT.jsonl: the test vectors of the dialects.
    #[arg(long, value_name = "DIRECTORY")]
    record: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct FactsArgs {
    #[command(flatten)]
    which: Which,
    /// Measure again what is known already.
    #[arg(long)]
    again: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Which {
    fn entries(&self) -> anyhow::Result<Vec<&'static Entry>> {
        let catalogue = catalogue()?;
        if self.all {
            return Ok(catalogue.entries().iter().collect());
        }
        Ok(self.names.iter().map(|name| catalogue.find(name)).collect::<Result<_, _>>()?)
    }
}

pub fn run(args: &SubjectsArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        SubjectsCommand::List { json } => list(*json),
        SubjectsCommand::Install(which) => install(which),
        SubjectsCommand::Check(args) => check_all(args),
        SubjectsCommand::Facts(args) => facts::run(&args.which.names, args.again, args.json),
        SubjectsCommand::Start { name } => start(name),
        SubjectsCommand::Rm(which) => remove(which),
    }
}

fn list(json: bool) -> anyhow::Result<ExitCode> {
    let cache = Cache::of_user();
    let mut rows = Vec::new();
    for entry in catalogue()?.entries() {
        let state = match cache.find(entry) {
            Ok(installed) => format!("installed, {}", mebibytes(installed.bytes)),
            Err(InstallError::MissingTool { tool, .. }) => format!("needs {tool}"),
            Err(_) => "not installed".to_owned(),
        };
        rows.push((&entry.manifest, state));
    }
    if json {
        let value = |(manifest, state): &(_, String)| serde_json::json!({ "manifest": manifest, "state": state });
        println!("{}", serde_json::Value::from_iter(rows.iter().map(value)));
        return Ok(ExitCode::Ok);
    }
    for (manifest, state) in rows {
        let endpoints: Vec<&str> = manifest.endpoints.iter().map(|endpoint| endpoint.name.as_str()).collect();
        let what = format!("{} {}", manifest.title, manifest.version);
        println!("{:<18} {what:<32} {state:<24} {}", manifest.name, endpoints.join(", "));
    }
    Ok(ExitCode::Ok)
}

fn install(which: &Which) -> anyhow::Result<ExitCode> {
    signals::block();
    let cache = Cache::of_user();
    let mut code = ExitCode::Ok;
    for entry in which.entries()? {
        let name = &entry.manifest.name;
        match cache.install(entry, &mut signals::has_come) {
            Ok(installed) => {
                let size = mebibytes(installed.bytes);
                println!("{name}: {} {}, {size}, {:.0} s", entry.manifest.title, installed.version, installed.took_s);
            }
            // What this machine cannot run is left out of comparisons, and is no failure of the others.
            Err(error @ InstallError::MissingTool { .. }) if which.all => println!("{name}: left out: {error}"),
            Err(error @ InstallError::Interrupted { .. }) => return Err(error.into()),
            Err(error) => {
                eprintln!("{name}: {error}");
                code = ExitCode::Failed;
            }
        }
    }
    Ok(code)
}

fn check_all(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    signals::block();
    let cache = Cache::of_user();
    let logs = TemporaryFolder::make("pushlab-check")?;
    if let Some(folder) = &args.record {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    let options = CheckOptions {
        program: this_program()?,
        publications: args.publications,
        recordings: args.record.clone(),
        logs: logs.path().to_owned(),
    };
    let mut code = ExitCode::Ok;
    for entry in args.which.entries()? {
        let name = &entry.manifest.name;
        if let Some(error) = missing_tool(entry).filter(|_| args.which.all) {
            println!("{name}: left out: {error}");
            continue;
        }
        let installed = match cache.find(entry) {
            Ok(installed) => installed,
            Err(error) => {
                println!("{name}: {error}");
                code = ExitCode::Failed;
                continue;
            }
        };
        let is_wanted = |endpoint: &&Endpoint| {
            args.transport.as_ref().is_none_or(|wanted| endpoint.name == *wanted || endpoint.transport.name() == wanted)
        };
        for endpoint in entry.manifest.endpoints.iter().filter(is_wanted) {
            let outcome = check(&entry.manifest, &installed, endpoint, &options, &mut signals::has_come);
            if signals::has_come() {
                logs.keep_unless_empty();
                anyhow::bail!("interrupted");
            }
            if !tell(name, endpoint, outcome) {
                code = ExitCode::Failed;
            }
        }
    }
    logs.keep_unless_empty();
    Ok(code)
}

/// Says what a check found; `false` if it is not what the manifest says.
fn tell(name: &str, endpoint: &Endpoint, outcome: Result<Checked, String>) -> bool {
    let label = format!("{name} {}", endpoint.name);
    let checked = match outcome {
        Ok(checked) => checked,
        Err(why) => {
            println!("{label:<34} FAILED  {why}");
            return false;
        }
    };
    let echoes = checked.echoes.map_or("no echo".to_owned(), |(wanted, came)| format!("{came} of {wanted} echoes"));
    let counts = format!("{} of {} deliveries, {echoes}", checked.delivered, checked.expected);
    let errors: Vec<String> =
        checked.errors.iter().take(2).map(|(error, count)| format!("; {count} × {error}")).collect();
    let errors = errors.concat();
    let admitted = endpoint.loses.as_ref().map_or("admitted: nothing".to_owned(), |loses| {
        let most = loses.loss_percent_max.map_or_else(String::new, |most| format!(" (at most {most} % lost)"));
        format!("admitted: {}{most}, since {}", kinds(&loses.what), loses.why.trim())
    });
    let detail = format!("{} lost, {} twice, {} out of order", checked.lost(), checked.duplicated, checked.reordered);
    let came = kinds(&checked.faults());
    let judged = checked.judged(endpoint.admitted());
    match judged {
        Judged::Whole if endpoint.loses.is_none() => println!("{label:<34} ok      {counts}{errors}"),
        Judged::Whole => println!("{label:<34} ok      {counts}; came: nothing, {admitted}{errors}"),
        Judged::AsAdmitted => println!("{label:<34} loses   {counts}: {detail}; came: {came}, {admitted}{errors}"),
        Judged::Failed => println!("{label:<34} FAILED  {counts}: {detail}; came: {came}, {admitted}{errors}"),
    }
    judged != Judged::Failed
}

fn kinds(faults: &[Fault]) -> String {
    if faults.is_empty() {
        return "nothing".to_owned();
    }
    faults.iter().map(|fault| fault.name()).collect::<Vec<_>>().join(", ")
}

fn start(name: &str) -> anyhow::Result<ExitCode> {
    signals::block();
    let entry = catalogue()?.find(name)?;
    let installed = Cache::of_user().install(entry, &mut signals::has_come)?;
    let folder = TemporaryFolder::make("pushlab-start")?;
    let log = folder.path().join(format!("{name}.log"));
    let mut subject = Subject::start_foreign(ForeignStart {
        manifest: &entry.manifest,
        installed: &installed,
        host: Ipv4Addr::LOCALHOST,
        port: None,
        namespace: None,
        feed: None,
        compression_from: None,
        logs_collections: false,
        environment: &[],
        cores: &[],
        log,
    })?;
    println!("{} listens at {}; Ctrl-C ends it", entry.manifest.title, subject.address);
    for endpoint in &entry.manifest.endpoints {
        println!("  {:<16} {} at http://{}{}", endpoint.name, endpoint.dialect.name(), subject.address, endpoint.path);
    }
    while !signals::wait(Duration::from_millis(100)) {
        if let Some(why) = subject.death() {
            anyhow::bail!(why);
        }
    }
    subject.stop();
    Ok(ExitCode::Ok)
}

fn remove(which: &Which) -> anyhow::Result<ExitCode> {
    let cache = Cache::of_user();
    for entry in which.entries()? {
        let name = &entry.manifest.name;
        match cache.remove(name)? {
            0 => println!("{name}: was not installed"),
            count => println!("{name}: removed {count} installation{}", if count == 1 { "" } else { "s" }),
        }
    }
    Ok(ExitCode::Ok)
}
