//! What the clients and instruments of a plan ask.

use super::{Requests, Sending};
use pushlab_workload::plan::{Plan, Speaks};
use pushlab_workload::roles::Roles;
use std::sync::Arc;

/// What clients ask.
pub fn of_clients(plan: &Plan, roles: &Roles) -> Requests {
    let is_upstream = roles.collector.is_some() || roles.upstream_ns.is_some();
    let publish_to = if is_upstream { plan.upstream_channel() } else { plan.channel.clone() };
    let requests = Requests::new(&plan.target, &plan.channel, &publish_to, plan.poll_wait_s);
    let requests = requests.with_keep_alive(plan.sockets.keep_alive).with_headers(plan.headers, plan.compression_from);
    let requests = match &plan.speaks {
        Some(speaks) => requests.in_dialect(plan.transport, speaks, roles.traffic.sending()),
        None => requests,
    };
    let requests = match plan.newest_count() {
        Some(count) => requests.for_newest(count),
        None => requests,
    };
    let requests = if plan.echoes_in_streams() { requests.with_echoes_in_streams() } else { requests };
    let requests = match roles.rooms() {
        Some(rooms) => requests.in_rooms(Arc::clone(rooms)),
        None => requests,
    };
    // All else is measured in the first version, which announces nothing.
    let is_server_to_end = roles.storm.is_some_and(|storm| !storm.outage.is_cut());
    let requests = if is_server_to_end { requests.in_version_2() } else { requests };
    // Where the server pushes, users who come and go would be pushed too.
    let asks_for_users = plan.user_list && plan.transport.is_interval_driven();
    if asks_for_users { requests.with_user_list(&plan.users_channel()) } else { requests }
}

/// What it asks: nobody publishes to the channel that it subscribes to.
pub fn of_feeder(plan: &Plan) -> Requests {
    let requests = Requests::new(&plan.target, &plan.feeder_channel(), &plan.channel, plan.poll_wait_s);
    in_plans_dialect(requests.with_headers(plan.headers, plan.compression_from), plan, Some(Sending::Publish))
}

/// The same requests in the plan's dialect, from an instrument that is going to send this.
pub fn in_plans_dialect(requests: Requests, plan: &Plan, sending: Option<Sending>) -> Requests {
    match &plan.speaks {
        None => requests,
        // The conversation that is recorded is the first client's.
        Some(speaks) => requests.in_dialect(plan.transport, &Speaks { recording: None, ..speaks.clone() }, sending),
    }
}
