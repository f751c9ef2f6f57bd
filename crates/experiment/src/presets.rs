//! The experiments that come with the program.

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        /// Name and text of every preset.
        pub const PRESETS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../experiments/", $name, ".toml")))),*];
    };
}

presets! {
    "tangen-broadcast",
    "tangen-chat",
    "tangen-connections",
    "tangen-idle",
    "tangen-bytes",
    "johannessen-load",
    "johannessen-idle",
    "johannessen-directions",
    "johannessen-browsers",
    "johannessen-polls",
    "cometd-load",
    "cometd-idle",
    "cometd-oort",
    "cometd-features",
    "polling-study",
    "polling-study-tabs",
    "polling-study-tls",
    "polling-study-cluster",
    "polling-newest",
    "polling-intervals",
    "polling-break-even",
    "polling-share",
    "request-response",
    "polling-connections",
    "payload-by-transport",
    "bigestans-chat",
    "bigestans-pilot",
    "bigestans-causes",
    "bigestans-events",
    "bigestans-browsers",
    "transports-broadcast",
    "transports-capacity",
    "transports-upstream",
    "transports-idle",
    "transports-lan",
    "transports-4g",
    "transports-nginx",
    "transports-buffering-proxy",
    "transports-tabs",
    "transports-by-network",
    "nagle",
    "browser-limit",
    "browser-versus-native",
    "tls-cost",
    "http2-versus-http1",
    "compression",
    "peers-even-rate",
    "peers-fan-out",
    "peers-half-load",
    "peers-idle",
    "peers-idle-tls",
    "peers-rates",
    "platforms",
    "platforms-cores",
    "anomaly-stress",
    "anomaly-queues",
    "anomaly-memory",
    "polling-study-collection",
    "overload",
    "storm",
    "any-server",
}

/// Experiments that are run together, their runs interleaved.
#[derive(Debug, Clone, Copy)]
pub struct Suite {
    /// As `pushlab run` takes it.
    pub name: &'static str,
    /// One line for people.
    pub title: &'static str,
    /// Its presets.
    pub presets: &'static [&'static str],
    /// The profile in which they run when no other is asked for, if not in their full form.
    pub profile: Option<&'static str>,
}

/// Every suite.
pub const SUITES: &[Suite] = &[
    Suite {
        name: "transports",
        title: "Which transport costs what: a scorecard",
        presets: &[
            "transports-broadcast",
            "transports-capacity",
            "transports-upstream",
            "transports-idle",
            "transports-lan",
            "transports-4g",
            "transports-nginx",
            "transports-buffering-proxy",
            "transports-tabs",
        ],
        profile: Some("quick"),
    },
    Suite {
        name: "peers",
        title: "Everybody's servers: one workload, one client, one clock",
        presets: &["peers-even-rate", "peers-fan-out", "peers-half-load", "peers-idle"],
        profile: None,
    },
    Suite {
        name: "leaderboard",
        title: "Everybody's servers: the whole leaderboard",
        presets: &[
            "peers-even-rate",
            "peers-rates",
            "peers-fan-out",
            "peers-half-load",
            "peers-idle",
            "peers-idle-tls",
        ],
        profile: None,
    },
];

/// The title of a campaign that is called after a suite, or after a suite and its profile; of anything else its name.
pub fn suite_title(name: &str) -> String {
    let profile_of =
        |suite: &Suite| name.strip_prefix(suite.name).filter(|rest| rest.is_empty() || rest.starts_with('-'));
    let titled = SUITES.iter().find_map(|suite| Some((suite.title, profile_of(suite)?)));
    match titled.map(|(title, rest)| (title, rest.trim_start_matches('-'))) {
        None => name.to_owned(),
        Some((title, "")) => title.to_owned(),
        Some((title, profile)) => format!("{title} ({profile})"),
    }
}

/// The text of a preset.
pub fn text(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|(preset, _)| *preset == name).map(|(_, text)| *text)
}

/// Names of all suites and presets.
pub fn known() -> Vec<&'static str> {
    SUITES.iter().map(|suite| suite.name).chain(PRESETS.iter().map(|(name, _)| *name)).collect()
}

#[cfg(test)]
mod tests {
    use super::suite_title;

    #[test]
    fn a_campaign_is_titled_by_its_suite_and_its_profile() {
        let suite = "Which transport costs what: a scorecard";
        assert_eq!(suite_title("transports"), suite);
        assert_eq!(suite_title("transports-full"), format!("{suite} (full)"));
        assert_eq!(suite_title("transported"), "transported");
    }
}
