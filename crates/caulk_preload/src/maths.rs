//! Logarithm and exponential to some seven digits, without the mathematics library.

use std::f64::consts::{LN_2, LOG2_E};

/// Natural logarithm of a positive, normal number.
pub(crate) fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i32 - 1023;
    let mut mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    // ln m = 2 artanh((m - 1) / (m + 1)), and |s| <= 0.172.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let series = 1.0 + square * (1.0 / 3.0 + square * (1.0 / 5.0 + square * (1.0 / 7.0 + square / 9.0)));
    f64::from(exponent) * LN_2 + 2.0 * s * series
}

/// `1 - exp(-x)` for `x >= 0`, exact near zero too.
pub(crate) fn one_minus_exp(x: f64) -> f64 {
    if x < 1e-3 {
        return x * (1.0 - x * (0.5 - x * (1.0 / 6.0 - x / 24.0)));
    }
    if x > 40.0 {
        return 1.0;
    }
    let whole = (x * LOG2_E) as i32;
    let rest = x - f64::from(whole) * LN_2;
    // exp(-rest) for 0 <= rest < ln 2, to the tenth order.
    let mut term = 1.0;
    let mut sum = 1.0;
    for n in 1..=10 {
        term *= -rest / f64::from(n);
        sum += term;
    }
    1.0 - sum * f64::from_bits(((1023 - i64::from(whole)) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_agree_with_the_library() {
        for step in 1..4000 {
            let x = f64::from(step) * 0.01;
            assert!((ln(x) - x.ln()).abs() < 1e-7, "ln {x}");
            assert!((one_minus_exp(x) + (-x).exp_m1()).abs() < 1e-9, "exp {x}");
        }
        for power in 1..300 {
            let x = 0.5_f64.powi(power);
            assert!((ln(x) / x.ln() - 1.0).abs() < 1e-7, "ln {x}");
            assert!((one_minus_exp(x) / -(-x).exp_m1() - 1.0).abs() < 1e-9, "exp {x}");
        }
    }
}
