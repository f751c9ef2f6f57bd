//! The additive model of a row: a block's share, a variant's share, and what is left, which varies more for some variants
//! than for others.

use super::matrix;
use super::spread::{Deviations, spreads};

/// Blocks in which a variant needs a value beside another variant's. Two leave one degree of freedom, with which next to
/// nothing is found.
pub const BLOCKS_MIN: usize = 3;
/// Logarithms that differ by less are rounding, not variation.
pub const ROUNDING: f64 = 1e-9;

/// Estimates of a row, for those of its variants that have values in enough blocks.
pub struct Fit {
    /// Which variants: their positions in the row.
    pub variants: Vec<usize>,
    /// Their logarithms, but for a constant that all share.
    pub means: Vec<f64>,
    /// Whether nothing is left beside blocks and variants.
    pub is_exact: bool,
    /// Variance of one value of each variant.
    variances: Vec<f64>,
    /// Degrees of freedom with which it is known.
    freedoms: Vec<f64>,
    /// `weights[i][j][u]`: what a variance of variant u adds to that of the difference of the means i and j.
    weights: Vec<Vec<Vec<f64>>>,
}

/// What stands behind the difference of two means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Standard error.
    pub error: f64,
    /// Degrees of freedom.
    pub freedom: f64,
}

impl Fit {
    /// The rows by least squares, with every value as good as any other: a variant's estimate then depends on nothing but
    /// its differences from the others, whatever their variances are. The variances are found for all rows together.
    pub fn of(rows: &[&[Vec<Option<f64>>]]) -> Vec<Self> {
        let (mut fits, deviations): (Vec<Self>, Vec<Deviations>) =
            rows.iter().map(|blocks| Self::means_of(blocks)).unzip();
        let tested: Vec<usize> = (0..fits.len()).filter(|row| fits[*row].is_tested()).collect();
        let varying: Vec<Deviations> = tested.iter().map(|row| deviations[*row].clone()).collect();
        for (row, spreads) in tested.into_iter().zip(spreads(&varying)) {
            (fits[row].variances, fits[row].freedoms) = (spreads.variances, spreads.freedoms);
        }
        fits
    }

    /// A row without its variances, and what its means leave of it.
    fn means_of(blocks: &[Vec<Option<f64>>]) -> (Self, Deviations) {
        let variants = compared(blocks);
        let mut rows: Deviations = blocks
            .iter()
            .map(|block| {
                let value = |(place, variant): (usize, &usize)| Some((place, (*block.get(*variant)?)?));
                variants.iter().enumerate().filter_map(value).collect::<Vec<_>>()
            })
            .filter(|row| row.len() > 1)
            .collect();
        let inverse = inverse(&rows, variants.len());
        let mut sums = vec![0.0; variants.len()];
        for row in &rows {
            let middle = row.iter().map(|(_, value)| value).sum::<f64>() / row.len() as f64;
            row.iter().for_each(|(variant, value)| sums[*variant] += value - middle);
        }
        let means: Vec<f64> = inverse.iter().map(|line| line.iter().zip(&sums).map(|(a, b)| a * b).sum()).collect();
        let weights = weights(&rows, &inverse);
        rows.iter_mut().flatten().for_each(|(variant, value)| *value -= means[*variant]);
        let is_exact = largest_residual(&rows) < ROUNDING;
        // Until variances are found, or where there is none to find.
        let (variances, freedoms) = (vec![0.0; variants.len()], vec![f64::INFINITY; variants.len()]);
        (Self { variants, means, is_exact, variances, freedoms, weights }, rows)
    }

    /// The variants that all of these compare.
    pub fn common(all: &[Self]) -> Vec<usize> {
        let is_everywhere = |variant: &usize| all.iter().all(|one| one.place_of(*variant).is_some());
        all.first().map_or(Vec::new(), |first| first.variants.iter().copied().filter(is_everywhere).collect())
    }

    /// The same of some of its variants.
    pub fn only(&self, variants: &[usize]) -> Self {
        let places: Vec<usize> = variants.iter().filter_map(|variant| self.place_of(*variant)).collect();
        let weights = |i: &usize| places.iter().map(|j| self.weights[*i][*j].clone()).collect();
        Self {
            variants: places.iter().map(|place| self.variants[*place]).collect(),
            means: places.iter().map(|place| self.means[*place]).collect(),
            is_exact: self.is_exact,
            variances: self.variances.clone(),
            freedoms: self.freedoms.clone(),
            weights: places.iter().map(weights).collect(),
        }
    }

    /// The mean of parts with the same variants and no block in common, each with its share. Variances stay those of the
    /// parts.
    pub fn over(parts: &[(f64, &Self)]) -> Self {
        let variants = parts.first().map_or(Vec::new(), |(_, first)| first.variants.clone());
        let mean = |place: usize| parts.iter().map(|(share, part)| share * part.means[place]).sum();
        let weights = |i: usize, j: usize| {
            let of = |(share, part): &(f64, &Self)| part.weights[i][j].iter().map(|own| share * share * own).collect();
            parts.iter().flat_map(|part| -> Vec<f64> { of(part) }).collect()
        };
        let places = 0..variants.len();
        Self {
            means: places.clone().map(mean).collect(),
            is_exact: parts.iter().all(|(_, part)| part.is_exact),
            variances: parts.iter().flat_map(|(_, part)| part.variances.clone()).collect(),
            freedoms: parts.iter().flat_map(|(_, part)| part.freedoms.clone()).collect(),
            weights: places.clone().map(|i| places.clone().map(|j| weights(i, j)).collect()).collect(),
            variants,
        }
    }

    /// Where a variant is among those compared.
    pub fn place_of(&self, variant: usize) -> Option<usize> {
        self.variants.iter().position(|compared| *compared == variant)
    }

    /// Whether there is something to test: two variants or more, whose values vary.
    pub fn is_tested(&self) -> bool {
        self.variants.len() > 1 && !self.is_exact
    }

    /// The standard error of `means[i] - means[j]`, with the degrees of freedom that Satterthwaite gives a sum of
    /// variances ("An approximate distribution of estimates of variance components", *Biometrics Bulletin* 2, 1946).
    pub fn spread(&self, i: usize, j: usize) -> Spread {
        if self.is_exact || i == j {
            return Spread { error: 0.0, freedom: f64::INFINITY };
        }
        let (mut variance, mut square) = (0.0, 0.0);
        for ((weight, own), freedom) in self.weights[i][j].iter().zip(&self.variances).zip(&self.freedoms) {
            variance += weight * own;
            square += (weight * own).powi(2) / freedom;
        }
        let freedom = if square > 0.0 { variance * variance / square } else { f64::INFINITY };
        Spread { error: variance.sqrt(), freedom }
    }
}

/// Variants with a value in [`BLOCKS_MIN`] blocks that others of them share, all compared with one another through such
/// blocks: of several groups that are not, the largest.
fn compared(blocks: &[Vec<Option<f64>>]) -> Vec<usize> {
    let width = blocks.iter().map(Vec::len).max().unwrap_or(0);
    let has = |block: &[Option<f64>], variant: usize| {
        block.get(variant).is_some_and(|value| value.is_some_and(f64::is_finite))
    };
    let mut kept: Vec<usize> = (0..width).collect();
    loop {
        let shared = |variant: usize| {
            let is_shared = |block: &&Vec<Option<f64>>| {
                has(block, variant) && kept.iter().any(|other| *other != variant && has(block, *other))
            };
            blocks.iter().filter(is_shared).count()
        };
        let enough: Vec<usize> = kept.iter().copied().filter(|variant| shared(*variant) >= BLOCKS_MIN).collect();
        let largest = groups(&enough, |a, b| blocks.iter().any(|block| has(block, a) && has(block, b)))
            .into_iter()
            .rev()
            .max_by_key(Vec::len)
            .unwrap_or_default();
        if largest.len() == kept.len() {
            return kept;
        }
        kept = largest;
    }
}

/// `items` in groups, each of which hangs together by `is_joined`.
fn groups(items: &[usize], is_joined: impl Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for item in items {
        let (joined, mut apart): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|group| group.iter().any(|other| is_joined(*item, *other)));
        let mut merged: Vec<usize> = joined.into_iter().flatten().chain([*item]).collect();
        merged.sort_unstable();
        apart.push(merged);
        groups = apart;
    }
    groups
}

/// Inverse of the normal equations after the blocks are taken out; they leave a constant open, which is set so that the
/// means add up to 0.
fn inverse(rows: &Deviations, variants: usize) -> Vec<Vec<f64>> {
    let mut normal = vec![vec![1.0 / variants as f64; variants]; variants];
    for row in rows {
        for (v, _) in row {
            normal[*v][*v] += 1.0;
            row.iter().for_each(|(u, _)| normal[*v][*u] -= 1.0 / row.len() as f64);
        }
    }
    matrix::inverse(normal).expect("variants that hang together through blocks leave nothing open but a constant")
}

/// The largest of what neither blocks nor variants explain.
fn largest_residual(deviations: &Deviations) -> f64 {
    let of = |block: &Vec<(usize, f64)>| {
        let share = block.iter().map(|(_, value)| value).sum::<f64>() / block.len() as f64;
        block.iter().map(|(_, value)| (value - share).abs()).fold(0.0, f64::max)
    };
    deviations.iter().map(of).fold(0.0, f64::max)
}

fn weights(rows: &Deviations, inverse: &[Vec<f64>]) -> Vec<Vec<Vec<f64>>> {
    let variants = inverse.len();
    let of = |i: usize, j: usize| {
        let difference: Vec<f64> = inverse[i].iter().zip(&inverse[j]).map(|(a, b)| a - b).collect();
        let mut weights = vec![0.0; variants];
        for row in rows {
            let middle = row.iter().map(|(variant, _)| difference[*variant]).sum::<f64>() / row.len() as f64;
            row.iter().for_each(|(variant, _)| weights[*variant] += (difference[*variant] - middle).powi(2));
        }
        weights
    };
    (0..variants).map(|i| (0..variants).map(|j| of(i, j)).collect()).collect()
}
