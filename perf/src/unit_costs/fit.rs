//! A plane through measured points: what each unit of two amounts costs.

use serde::Serialize;

/// Two amounts, and what they cost together.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    pub amounts: [f64; 2],
    pub cost: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fit {
    pub unit_costs: [f64; 2],
    /// How far the fit is from the point that it meets worst, as a share of the point's cost.
    pub residual_max: f64,
}

/// The unit costs with the least sum of squared relative errors. None is negative: an amount that seems to save something
/// costs nothing, and the other is fitted alone. None if the points do not tell two costs apart, or cost nothing.
pub fn fit(points: &[Point]) -> Option<Fit> {
    if points.len() < 2 || points.iter().any(|point| point.cost <= 0.0) {
        return None;
    }
    // Each point divided by its cost, so that its error is a share and cheap points count as much as dear ones.
    let shares: Vec<[f64; 2]> = points
        .iter()
        .map(|point| point.amounts.map(|amount| amount / point.cost))
        .collect();
    let sum = |of: &dyn Fn(&[f64; 2]) -> f64| shares.iter().map(of).sum::<f64>();
    let (xx, yy, xy) = (
        sum(&|share| share[0] * share[0]),
        sum(&|share| share[1] * share[1]),
        sum(&|share| share[0] * share[1]),
    );
    let (x, y) = (sum(&|share| share[0]), sum(&|share| share[1]));
    let determinant = xx * yy - xy * xy;
    if determinant <= 1e-9 * xx * yy {
        return None;
    }
    let both = [
        (x * yy - y * xy) / determinant,
        (y * xx - x * xy) / determinant,
    ];
    let unit_costs = match both {
        [_, second] if second < 0.0 => [x / xx, 0.0],
        [first, _] if first < 0.0 => [0.0, y / yy],
        both => both,
    };
    let residual =
        |share: &[f64; 2]| (share[0] * unit_costs[0] + share[1] * unit_costs[1] - 1.0).abs();
    Some(Fit {
        unit_costs,
        residual_max: shares.iter().map(residual).fold(0.0, f64::max),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(amounts: [f64; 2], unit_costs: [f64; 2]) -> Point {
        let cost = amounts[0] * unit_costs[0] + amounts[1] * unit_costs[1];
        Point { amounts, cost }
    }

    const AMOUNTS: [[f64; 2]; 3] = [[0.05, 50.0], [0.05, 380.0], [0.051, 1_500.0]];

    #[test]
    fn points_on_a_plane_give_its_unit_costs_back() {
        let points = AMOUNTS.map(|amounts| point(amounts, [1.5, 40e-6]));
        let fit = fit(&points).unwrap();
        assert!((fit.unit_costs[0] - 1.5).abs() < 1e-9, "{fit:?}");
        assert!((fit.unit_costs[1] - 40e-6).abs() < 1e-12, "{fit:?}");
        assert!(fit.residual_max < 1e-9);
    }

    #[test]
    fn a_point_off_the_plane_shows_in_the_residual() {
        let mut points = AMOUNTS.map(|amounts| point(amounts, [1.5, 40e-6]));
        points[1].cost *= 1.5;
        let fit = fit(&points).unwrap();
        assert!((0.05..0.5).contains(&fit.residual_max), "{fit:?}");
    }

    #[test]
    fn what_seems_to_save_costs_nothing() {
        let mut points = AMOUNTS.map(|amounts| point(amounts, [1.5, 0.0]));
        points[2].cost *= 0.9;
        let fit = fit(&points).unwrap();
        assert_eq!(fit.unit_costs[1], 0.0);
        assert!((1.35..1.5).contains(&fit.unit_costs[0]), "{fit:?}");
    }

    #[test]
    fn points_that_do_not_tell_the_costs_apart_give_none() {
        let alike = [[0.05, 50.0], [0.1, 100.0]];
        assert_eq!(
            fit(&alike.map(|amounts| point(amounts, [1.5, 40e-6]))),
            None
        );
        assert_eq!(fit(&[point(AMOUNTS[0], [1.5, 40e-6])]), None);
        assert_eq!(
            fit(&AMOUNTS.map(|amounts| point(amounts, [0.0, 0.0]))),
            None
        );
    }
}
