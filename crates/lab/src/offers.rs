//! What the subjects of an experiment can do: points of its matrix that one does not offer are left out.

use crate::cell::SlowPolicy;
use crate::experiment::Experiment;
use crate::subjects::named::{Named, Server};
use pushlab_wire::transport::Transport;

/// Refuses what foreign subjects cannot do.
///
/// # Errors
/// As a sentence.
pub fn check(experiment: &Experiment, subjects: &[Named]) -> Result<(), String> {
    if experiment.capacity_share.as_ref().is_some_and(|wanted| !(wanted.share > 0.0 && wanted.share <= 1.0)) {
        return Err("capacity_share.share is above 0 and at most 1".to_owned());
    }
    if subjects.iter().all(Named::is_ours) {
        return Ok(());
    }
    let all_sockets =
        || std::iter::once(&experiment.sockets).chain(experiment.variants.iter().filter_map(|v| v.sockets.as_ref()));
    for (what, is_asked) in [
        ("sockets.tls", all_sockets().any(|sockets| sockets.tls)),
        ("sockets.writes_per_event", all_sockets().any(|sockets| sockets.writes_per_event > 1)),
        ("sockets.nagle", all_sockets().any(|sockets| sockets.nagle)),
        ("sockets.send_buffer_bytes", all_sockets().any(|sockets| sockets.send_buffer_bytes.is_some())),
        ("sockets.receive_buffer_bytes", all_sockets().any(|sockets| sockets.receive_buffer_bytes.is_some())),
        ("sockets.connections_per_host_max", all_sockets().any(|s| s.connections_per_host_max.is_some())),
        ("receipts", experiment.receipts),
        ("polling.user_list", experiment.polling.user_list),
    ] {
        if is_asked {
            return Err(format!("{what} is something that our own server alone can do: leave the others out"));
        }
    }
    let elsewhere = subjects.iter().find(|subject| matches!(subject.server, Server::Elsewhere(_)));
    if let Some(elsewhere) = elsewhere.filter(|_| !experiment.networks.is_empty()) {
        return Err(format!("networks: {} runs elsewhere, so no network can be put before it", elsewhere.name));
    }
    if experiment.cells().is_empty() {
        let names: Vec<&str> = subjects.iter().map(|subject| subject.name.as_str()).collect();
        return Err(format!(
            "none of {} offers what is asked for: see `pushlab subjects list` for transports; echo, rooms and feed \
             (a back end's; with by = \"publisher\" all have it) are in their manifests",
            names.join(", ")
        ));
    }
    Ok(())
}

/// What a subject of an experiment offers. Of one that is not known, of whom only figures are, anything is believed.
pub struct Offers<'a> {
    subject: Option<Named>,
    experiment: &'a Experiment,
}

impl<'a> Offers<'a> {
    /// Of the subject that an experiment names so.
    pub fn of(subject: &str, experiment: &'a Experiment) -> Self {
        Self { subject: Named::parse(subject).ok().filter(|subject| !subject.is_ours()), experiment }
    }

    /// Whether it offers a transport, and what a variant's scenario needs.
    pub fn has(&self, transport: Transport, variant: Option<&str>) -> bool {
        let variant = self.experiment.variants.iter().find(|known| Some(known.name.as_str()) == variant);
        let scenario = variant.and_then(|variant| variant.scenario.as_ref()).unwrap_or(&self.experiment.scenario);
        self.subject.as_ref().is_none_or(|subject| subject.offers(transport, scenario))
    }

    /// Policies are our server's; where one is chosen or several are compared, others stand beside them with their own.
    pub fn policies<'p>(&self, policies: &'p [SlowPolicy]) -> &'p [SlowPolicy] {
        match (&self.subject, policies) {
            (Some(_), [first, rest @ ..]) if *first != SlowPolicy::Close || !rest.is_empty() => &[SlowPolicy::Own],
            _ => policies,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::cell::SlowPolicy;
    use crate::experiment::Experiment;
    use pushlab_wire::transport::Transport;

    fn experiment(changes: &str) -> Result<Experiment, String> {
        let text = format!(
            "name = \"t\"\ntitle = \"T\"\nclients = [2]\nrepeats = 2\n{changes}\n[phases]\nconnect_ms = 1\nwarm_up_ms = 0\n\
             idle_ms = 0\nload_ms = 1\ndrain_ms = 0\nafter_ms = 0\n"
        );
        Experiment::parse(&text, None, "test").map_err(|error| error.to_string())
    }

    const IDLE: &str = "scenario = { kind = \"idle\" }";

    #[test]
    fn only_what_is_offered_is_planned() {
        let all = "transports = [\"websocket\", \"http-streaming\", \"polling\", \"websocket-polling\"]";
        let planned =
            experiment(&format!("subjects = [\"pushlab\", \"sockjs\", \"sockjs:htmlfile\"]\n{all}\n{IDLE}")).unwrap();
        let of = |subject: &str| -> Vec<Transport> {
            let cells = planned.cells();
            cells.iter().filter(|cell| cell.subject == subject).map(|cell| cell.transport).collect()
        };
        assert_eq!(of("pushlab").len(), 4);
        assert_eq!(of("sockjs"), [Transport::WebSocket, Transport::HttpStreaming]);
        assert_eq!(of("sockjs:htmlfile"), [Transport::HttpStreaming]);
        assert_eq!(planned.runs(), 14);
        let feed = "scenario = { kind = \"feed\", interval_us = 5000, payload_bytes = 64";
        for (scenario, subjects) in [
            (format!("{feed} }}"), vec!["pushlab", "node-bare"]),
            (format!("{feed}, by = \"publisher\" }}"), vec!["pushlab", "node-bare", "nchan"]),
            (
                "scenario = { kind = \"echo\", interval_ms = 50, payload_bytes = 64 }".to_owned(),
                vec!["pushlab", "node-bare"],
            ),
        ] {
            let subjects_asked = "subjects = [\"pushlab\", \"node-bare\", \"nchan\"]\ntransports = [\"websocket\"]";
            let planned = experiment(&format!("{subjects_asked}\n{scenario}")).unwrap().cells();
            let planned: Vec<&str> = planned.iter().map(|cell| cell.subject.as_str()).collect();
            assert_eq!(planned, subjects, "{scenario}");
        }
    }

    #[test]
    fn our_policies_are_not_those_of_others() {
        let base = format!("subjects = [\"pushlab\", \"node-bare\"]\ntransports = [\"websocket\"]\n{IDLE}");
        for (policies, ours, theirs) in [
            ("", 1, SlowPolicy::Close),
            ("policies = [\"drop-oldest\"]", 1, SlowPolicy::Own),
            ("policies = [\"close\", \"conflate\"]", 2, SlowPolicy::Own),
        ] {
            let cells = experiment(&format!("{policies}\n{base}")).unwrap().cells();
            assert_eq!(cells.len(), ours + 1, "{policies}");
            assert_eq!(cells[ours].policy, theirs, "{policies}");
        }
        assert!(experiment(&format!("policies = [\"own\"]\n{base}")).is_err());
    }

    #[test]
    fn what_only_our_server_can_do_is_refused_beside_others() {
        let base = format!("subjects = [\"pushlab\", \"node-bare\"]\ntransports = [\"websocket\"]\n{IDLE}");
        for (change, why) in [
            ("receipts = true", "receipts is something that our own server alone can do"),
            ("sockets = { tls = true }", "sockets.tls is"),
            ("sockets = { nagle = true }", "sockets.nagle is"),
            ("polling = { user_list = true }", "polling.user_list is"),
            ("capacity_share = { of = \"x\", share = 1.5 }", "capacity_share.share is above 0"),
        ] {
            let error = experiment(&format!("{change}\n{base}")).unwrap_err();
            assert!(error.contains(why), "{change}: {error}");
        }
        let elsewhere = "subjects = [\"a=bare+http://127.0.0.1:1/\"]\ntransports = [\"sse\"]\nnetworks = [\"4g\"]";
        assert!(experiment(&format!("{elsewhere}\n{IDLE}")).unwrap_err().contains("runs elsewhere"));
        let nothing = "subjects = [\"mercure\"]\ntransports = [\"websocket\"]";
        assert!(experiment(&format!("{nothing}\n{IDLE}")).unwrap_err().contains("none of mercure offers"));
    }
}
