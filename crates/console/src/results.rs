//! What is stored: the list, and reports as pages.

use crate::page;
use pushlab_lab::archive::{self, ArchiveError};
use pushlab_lab::report::CompareError;
use pushlab_lab::report::model::Report;
use pushlab_lab::stored::{self, StoredError};
use pushlab_server::application::{Body, Request, Response};
use pushlab_server::requests::{Answer, Refusal, check, json};
use pushlab_store::{ExperimentRow, Store, StoreError};
use pushlab_wire::codes::ErrorCode;
use std::path::{Path, PathBuf};

/// Most results of one comparison: each is read whole.
const MAX_COMPARED: usize = 8;
/// The report's script and style are in the page, and it loads nothing.
const REPORT_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                             img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The store of the console.
pub struct Results {
    /// The file; `None` for the user's own.
    path: Option<PathBuf>,
    is_hidden: bool,
}

impl Results {
    pub fn new(path: Option<PathBuf>, is_hidden: bool) -> Self {
        Self { path, is_hidden }
    }

    /// The file as it was named.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The store, which is made if it is missing.
    pub fn open(&self) -> Result<Store, Refusal> {
        archive::open(self.path()).map_err(|error| Refusal::failed(&error))
    }

    /// The store, if there is one: reading makes none. It is opened for each request, so that it may be replaced
    /// meanwhile, and a lab that writes is not waited for.
    fn existing(&self) -> Result<Option<Store>, Refusal> {
        if self.is_hidden {
            return Ok(None);
        }
        let failed = |error: StoreError| Refusal::failed(&error);
        let path = self.path.clone().map_or_else(Store::default_path, Ok).map_err(failed)?;
        if path.exists() { Store::open(&path).map(Some).map_err(failed) } else { Ok(None) }
    }

    /// `GET /api/results`.
    pub fn list(&self, request: &Request) -> Answer {
        check(request, &["GET"])?;
        Ok(match self.existing()? {
            Some(store) => json(&archive::summaries(&store).map_err(|error| Refusal::failed(&error))?),
            None => json(&[(); 0]),
        })
    }

    /// `GET /reports/ID`, and with `compare` in place of the number `GET /reports/compare?baseline=A&candidate=B`.
    pub fn report(&self, request: &Request, which: &str) -> Answer {
        check(request, &["GET"])?;
        let nothing = || Refusal::new(ErrorCode::NotFound, "nothing is stored yet");
        let store = self.existing()?.ok_or_else(nothing)?;
        let report = match which {
            "compare" => comparison(&store, request)?,
            number => {
                let row = find(&store, number)?;
                let results = stored::read_all(&store, &[row]).map_err(refusal)?;
                stored::report_of(&results, None).map_err(refusal)?
            }
        };
        let html = page::html(&report).map_err(|error| Refusal::failed(&error))?;
        let response = Response::new(200, "text/html; charset=utf-8", Body::Own(html.into_bytes()));
        Ok(response.with("Content-Security-Policy", REPORT_POLICY))
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
    let rows = named.iter().map(|number| find(store, number)).collect::<Result<Vec<_>, _>>()?;
    let (results, comparison) = stored::compare(store, &rows, &[]).map_err(|error| match error {
        StoredError::Archive(error) => refusal(error),
        StoredError::Compare(error @ (CompareError::One | CompareError::NothingInCommon(..))) => {
            Refusal::new(ErrorCode::BadRequest, error.to_string())
        }
        StoredError::Compare(error) => Refusal::failed(&error),
    })?;
    stored::report_of(&results, Some(comparison)).map_err(refusal)
}

/// The result of that number: a name in an address would mean another result after the next campaign.
fn find(store: &Store, number: &str) -> Result<ExperimentRow, Refusal> {
    let Ok(id) = number.parse::<i64>() else {
        let message = format!("{number:?} is no number of a result; the list of results has them");
        return Err(Refusal::new(ErrorCode::BadRequest, message));
    };
    store.experiment(id).map(|experiment| experiment.row).map_err(|error| refusal(error.into()))
}

fn refusal(error: ArchiveError) -> Refusal {
    match &error {
        ArchiveError::Store(StoreError::NotFound { .. }) => Refusal::new(ErrorCode::NotFound, error.to_string()),
        _ => Refusal::failed(&error),
    }
}
