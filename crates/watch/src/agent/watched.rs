//! Which servers of a campaign are watched by agents.

use super::Agent;
use pushlab_bus::{Crew, CrewError, Watcher};
use pushlab_probe::machine::MachineFacts;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Time for an agent to be there before a run: one that was lost may be started again.
const GATHER_WITHIN: Duration = Duration::from_secs(30);

/// The agents of a campaign: nobody where it has no fleet.
#[derive(Clone, Default)]
pub struct Agents(Option<Arc<Watched>>);

impl std::fmt::Debug for Agents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Agents").field(&self.0.as_deref().map(|watched| &watched.at)).finish()
    }
}

struct Watched {
    crew: Arc<Crew>,
    /// Addresses of servers for which there was an agent when the campaign began. It is needed from then on: figures would
    /// come and go otherwise.
    at: BTreeSet<IpAddr>,
}

impl Agents {
    /// The agents of a fleet that watch servers at these addresses, as far as there are any; waits until they are this lab's.
    ///
    /// # Errors
    /// See [`CrewError`].
    pub fn of_fleet(
        crew: &Arc<Crew>,
        servers: &BTreeSet<IpAddr>,
        watcher: &mut dyn Watcher,
    ) -> Result<Self, CrewError> {
        let at: BTreeSet<IpAddr> = servers.iter().copied().filter(|server| crew.is_watched(*server)).collect();
        let this = Self((!at.is_empty()).then(|| Arc::new(Watched { crew: Arc::clone(crew), at })));
        this.gather(watcher)?;
        Ok(this)
    }

    /// Whether nobody watches.
    pub fn are_none(&self) -> bool {
        self.0.is_none()
    }

    /// What machines they are on, by their names.
    pub fn machines(&self) -> Vec<(String, MachineFacts)> {
        let agents = self.0.iter().flat_map(|watched| watched.crew.agents());
        agents.map(|agent| (agent.name, agent.machine)).collect()
    }

    /// Sees to it that those who are needed are there.
    ///
    /// # Errors
    /// See [`CrewError`].
    pub fn gather(&self, watcher: &mut dyn Watcher) -> Result<(), CrewError> {
        let Some(Watched { crew, at }) = self.0.as_deref() else { return Ok(()) };
        at.iter().try_for_each(|at| crew.gather_agent(*at, GATHER_WITHIN, watcher))
    }

    /// Who watches servers at an address.
    pub fn beside(&self, at: IpAddr) -> Option<Agent> {
        let Watched { crew, .. } = self.0.as_deref().filter(|watched| watched.at.contains(&at))?;
        Some(Agent::new(Arc::clone(crew), at, crew.is_of_this_machine(at)))
    }
}
