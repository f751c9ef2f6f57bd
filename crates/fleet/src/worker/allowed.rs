//! What a worker may use of its machine for a run.

use pushlab_workload::messages::Order;
use pushlab_workload::plan::Plan;
use std::ffi::OsString;
use std::path::PathBuf;

/// Files and programs that a worker may use. Whoever starts it names them on its command line, since a plan may come from
/// another machine.
#[derive(Debug, Clone, Default)]
pub struct Allowed {
    /// Whether it may start a browser, and [what pages load there](Plan::page_scripts).
    pub browser: Option<Vec<PathBuf>>,
    /// Where a conversation is recorded; see [`recording`](pushlab_workload::plan::Speaks::recording).
    pub recording: Option<PathBuf>,
}

impl Allowed {
    /// The arguments that let `pushlab worker` do what a plan from this machine asks for.
    pub fn arguments(plan: &Plan) -> Vec<OsString> {
        let mut arguments = Vec::new();
        if let Some(path) = plan.speaks.as_ref().and_then(|speaks| speaks.recording.as_ref()) {
            arguments.extend(["--recording".into(), path.into()]);
        }
        if plan.clients_in.is_browser() {
            arguments.push("--browser".into());
            arguments.extend(plan.page_scripts.iter().flatten().map(OsString::from));
        }
        arguments
    }

    /// The order, with the allowed files filled in.
    ///
    /// # Errors
    /// As a sentence, if it needs something that is not allowed.
    pub fn complete(&self, order: Order) -> Result<Order, String> {
        let Order::Prepare { mut plan, segment } = order else { return Ok(order) };
        if plan.clients_in.is_browser() && self.browser.is_none() {
            let kind = plan.clients_in.kind;
            return Err(format!(
                "the plan's clients live in a browser ({kind:?}), which this worker may not start: a fleet's workers host \
                 only native clients"
            ));
        }
        plan.page_scripts.clone_from(&self.browser);
        plan.speaks.iter_mut().for_each(|speaks| speaks.recording.clone_from(&self.recording));
        Ok(Order::Prepare { plan, segment })
    }
}
