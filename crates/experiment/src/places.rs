//! The points of an experiment's matrix that its variants cover, found without visiting those they leave out.

use crate::variant::Variant;
use crate::written::Written;
use std::collections::{BTreeMap, BTreeSet};

/// Numbers of clients, rates and sizes, and how to find them.
struct Axis<'e> {
    all: &'e [u32],
    at: BTreeMap<u32, usize>,
}

impl<'e> Axis<'e> {
    fn of(all: &'e [u32]) -> Self {
        Self { all, at: all.iter().enumerate().map(|(at, value)| (*value, at)).collect() }
    }

    /// Those that are named, in the order of the list; all where none is. An axis that is not swept has one place.
    fn named(&self, named: &[u32]) -> Vec<Option<u32>> {
        if self.all.is_empty() {
            return vec![None];
        }
        if named.is_empty() {
            return self.all.iter().copied().map(Some).collect();
        }
        let places: BTreeSet<usize> = named.iter().filter_map(|value| self.at.get(value).copied()).collect();
        places.into_iter().map(|at| Some(self.all[at])).collect()
    }
}

/// What a variant is for, whatever the subject and the transport.
pub(crate) struct Places<'e> {
    /// `None` where the experiment has no variants.
    pub variant: Option<&'e Variant>,
    clients: Vec<u32>,
    rates: Vec<Option<u32>>,
    sizes: Vec<Option<u32>>,
}

impl Places<'_> {
    /// Clients, rate and size of each.
    pub fn all(&self) -> impl Iterator<Item = (u32, Option<u32>, Option<u32>)> {
        let swept = self.rates.iter().flat_map(|rate| self.sizes.iter().map(move |size| (*rate, *size)));
        swept.flat_map(|(rate, size)| self.clients.iter().map(move |clients| (*clients, rate, size)))
    }
}

/// The places of all variants.
pub(crate) struct Matrix<'e> {
    all: Vec<Places<'e>>,
    /// Which are for every subject.
    of_everybody: Vec<usize>,
    /// Which are for the subject of this name.
    of: BTreeMap<&'e str, Vec<usize>>,
}

impl<'e> Matrix<'e> {
    pub fn of(written: &'e Written) -> Self {
        let [clients, rates, sizes] =
            [&written.clients, &written.deliveries_per_s, &written.payload_bytes].map(|all| Axis::of(all));
        let mut matrix = Self { all: Vec::new(), of_everybody: Vec::new(), of: BTreeMap::new() };
        if written.variants.is_empty() {
            matrix.add(None, [clients.named(&[]), rates.named(&[]), sizes.named(&[])]);
        }
        for variant in &written.variants {
            let places = [
                clients.named(&variant.clients),
                rates.named(&variant.deliveries_per_s),
                sizes.named(&variant.payload_bytes),
            ];
            matrix.add(Some(variant), places);
        }
        matrix
    }

    fn add(&mut self, variant: Option<&'e Variant>, [clients, rates, sizes]: [Vec<Option<u32>>; 3]) {
        let at = self.all.len();
        let subjects = variant.map_or(&[][..], |variant| &variant.subjects);
        subjects.iter().for_each(|name| self.of.entry(name).or_default().push(at));
        if subjects.is_empty() {
            self.of_everybody.push(at);
        }
        self.all.push(Places { variant, clients: clients.into_iter().flatten().collect(), rates, sizes });
    }

    /// What is for the subject of this name, in the order of the variants.
    pub fn of_subject(&self, name: &str) -> impl Iterator<Item = &Places<'e>> {
        let own = self.of.get(name).into_iter().flatten();
        let all: BTreeSet<usize> = self.of_everybody.iter().chain(own).copied().collect();
        all.into_iter().map(|at| &self.all[at])
    }
}
