//! What is stored: the list, and reports as pages.

use crate::assets::{REPORT_PAGE, report_policy};
use pushlab_analysis::report::{Asked, CompareError};
use pushlab_application::requests::{Answer, Refusal, json};
use pushlab_application::{Body, Request, Response};
use pushlab_lab::archive::{self, ArchiveError};
use pushlab_lab::stored::{self, StoredError};
use pushlab_render::html;
use pushlab_report::Report;
use pushlab_server::THREADS;
use pushlab_store::{CampaignRow, Store, StoreError};
use pushlab_wire::codes::ErrorCode;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most results of one comparison: each is read whole.
const MAX_COMPARED: usize = 8;
/// Most reports that are made at once: half of the threads, so that what is quick goes on beside them.
const MAX_AT_ONCE: usize = THREADS / 2;
/// The store of the console.
pub struct Results {
    /// The file; `None` for the user's own.
    path: Option<PathBuf>,
    is_hidden: bool,
    /// Reports that are being made.
    making: AtomicUsize,
}

/// A report that is being made, until it is dropped.
struct Making<'r>(&'r AtomicUsize);

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Results {
    pub fn new(path: Option<PathBuf>, is_hidden: bool) -> Self {
        Self { path, is_hidden, making: AtomicUsize::new(0) }
    }

    /// The file as it was named.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The store, which is made if it is missing.
    pub fn open(&self) -> Result<Store, Refusal> {
        archive::open(self.path()).map_err(|error| Refusal::failed(&error))
    }

    /// The store to read, if there is one. It is opened for each request, so that it may be replaced
    /// meanwhile, and a lab that writes is not waited for.
    fn existing(&self) -> Result<Option<Store>, Refusal> {
        if self.is_hidden {
            return Ok(None);
        }
        let failed = |error: StoreError| Refusal::failed(&error);
        let path = self.path.clone().map_or_else(Store::default_path, Ok).map_err(failed)?;
        if path.exists() { Store::open_to_read(&path).map(Some).map_err(failed) } else { Ok(None) }
    }

    /// `GET /api/results`.
    pub fn list(&self) -> Answer {
        Ok(match self.existing()? {
            Some(store) => json(&archive::summaries(&store).map_err(|error| Refusal::failed(&error))?),
            None => json(&[(); 0]),
        })
    }

    fn begin(&self) -> Result<Making<'_>, Refusal> {
        let before = self.making.fetch_add(1, Ordering::Relaxed);
        let making = Making(&self.making);
        if before < MAX_AT_ONCE {
            return Ok(making);
        }
        let message =
            format!("{MAX_AT_ONCE} reports are being made, which is as many as at once; ask again in a moment");
        Err(Refusal::new(ErrorCode::Overloaded, message))
    }

    /// `GET /reports/ID`.
    pub fn report(&self, number: &str) -> Answer {
        self.page(|store| {
            let results = stored::read_all(store, &[find(store, number)?]).map_err(refusal)?;
            stored::report_of(&results, Asked::default()).map_err(refusal)
        })
    }

    /// `GET /reports/compare?baseline=A&candidate=B`.
    pub fn comparison(&self, request: &Request) -> Answer {
        self.page(|store| comparison(store, request))
    }

    fn page(&self, report: impl FnOnce(&Store) -> Result<Report, Refusal>) -> Answer {
        let _making = self.begin()?;
        let nothing = || Refusal::new(ErrorCode::NotFound, "nothing is stored yet");
        let store = self.existing()?.ok_or_else(nothing)?;
        let html = html::text(&report(&store)?, REPORT_PAGE).map_err(|error| Refusal::failed(&error))?;
        let response = Response::new(200, "text/html; charset=utf-8", Body::Own(html.into_bytes()));
        Ok(response.with("Content-Security-Policy", report_policy(false)))
    }
}

/// The first of the parameters against the others; one alone is compared within itself.
fn comparison(store: &Store, request: &Request) -> Result<Report, Refusal> {
    let of = |name: &'static str| request.query.iter().filter(move |(n, _)| n == name).map(|(_, value)| value.as_str());
    let named: Vec<&str> = of("baseline").chain(of("candidate")).collect();
    if of("baseline").count() != 1 || named.len() > MAX_COMPARED {
        let message = format!("a comparison has one `baseline`, and from none to {} a `candidate`", MAX_COMPARED - 1);
        return Err(Refusal::new(ErrorCode::BadRequest, message));
    }
    let numbers = named.iter().map(|number| Ok(find(store, number)?.id.to_string())).collect::<Result<Vec<_>, _>>()?;
    let rows = store.find_all(&numbers).map_err(|error| refusal(error.into()))?;
    let (results, comparison) = stored::compare(store, &rows, &[], &BTreeMap::new()).map_err(|error| match error {
        StoredError::Archive(error) => refusal(error),
        StoredError::Compare(error @ (CompareError::One | CompareError::NothingInCommon(..))) => {
            Refusal::new(ErrorCode::BadRequest, error.to_string())
        }
        StoredError::Compare(error) => Refusal::failed(&error),
    })?;
    stored::report_of(&results, Asked { comparison: Some(comparison), ..Asked::default() }).map_err(refusal)
}

/// The result of that number: a name in an address would mean another result after the next campaign.
fn find(store: &Store, number: &str) -> Result<CampaignRow, Refusal> {
    let Ok(id) = number.parse::<i64>() else {
        let message = format!("{number:?} is no number of a result; the list of results has them");
        return Err(Refusal::new(ErrorCode::BadRequest, message));
    };
    store.campaign(id).map(|experiment| experiment.row).map_err(|error| refusal(error.into()))
}

fn refusal(error: ArchiveError) -> Refusal {
    match &error {
        ArchiveError::Store(StoreError::NotFound { .. }) => Refusal::new(ErrorCode::NotFound, error.to_string()),
        ArchiveError::Store(StoreError::Twice { .. }) => Refusal::new(ErrorCode::BadRequest, error.to_string()),
        _ => Refusal::failed(&error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_reports_are_made_at_once_and_no_more() {
        let results = Results::new(None, true);
        let mut making: Vec<_> = (0..MAX_AT_ONCE).map(|_| results.begin().ok().unwrap()).collect();
        assert_eq!(results.begin().err().map(|refusal| refusal.code()), Some(ErrorCode::Overloaded));
        making.pop();
        assert!(results.begin().is_ok());
        drop(making);
        assert_eq!(results.making.load(Ordering::Relaxed), 0);
    }
}
