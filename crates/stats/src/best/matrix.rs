//! Inverse of a small matrix.

/// Pivots below this share of the largest element are 0 but for rounding.
const SINGULAR: f64 = 1e-10;

/// The inverse by Gauss and Jordan with row pivots; `None` where there is none.
pub fn inverse(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let size = matrix.len();
    let largest = matrix.iter().flatten().fold(0.0f64, |largest, value| largest.max(value.abs()));
    let mut inverse: Vec<Vec<f64>> =
        (0..size).map(|i| (0..size).map(|j| if i == j { 1.0 } else { 0.0 }).collect()).collect();
    for column in 0..size {
        let pivot = (column..size).max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
        if matrix[pivot][column].abs() <= SINGULAR * largest {
            return None;
        }
        matrix.swap(column, pivot);
        inverse.swap(column, pivot);
        let scale = 1.0 / matrix[column][column];
        matrix[column].iter_mut().chain(&mut inverse[column]).for_each(|value| *value *= scale);
        let (line, inverted) = (matrix[column].clone(), inverse[column].clone());
        for row in (0..size).filter(|row| *row != column) {
            let factor = matrix[row][column];
            matrix[row].iter_mut().zip(&line).for_each(|(value, other)| *value -= factor * other);
            inverse[row].iter_mut().zip(&inverted).for_each(|(value, other)| *value -= factor * other);
        }
    }
    Some(inverse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_times_its_inverse_is_one() {
        let matrix = vec![vec![0.0, 2.0, 1.0], vec![1.0, -1.0, 3.0], vec![4.0, 0.5, 0.25]];
        let inverse = inverse(matrix.clone()).unwrap();
        for (i, line) in matrix.iter().enumerate() {
            for j in 0..3 {
                let found: f64 = line.iter().zip(&inverse).map(|(a, b)| a * b[j]).sum();
                assert!((found - if i == j { 1.0 } else { 0.0 }).abs() < 1e-12, "{i} {j}: {found}");
            }
        }
    }

    #[test]
    fn a_singular_matrix_has_none() {
        assert_eq!(inverse(vec![vec![1.0, 2.0], vec![2.0, 4.0]]), None);
        assert_eq!(inverse(vec![vec![0.25; 2]; 2]), None);
    }
}
