//! eps of the stronger clone bound, lower and upper: `cargo run --offline -- 1000000 4 1e-8` (users, local eps, delta).
use std::env;

extern "C" {
    fn sb_abi() -> i32;
    fn sb_clones_epsilon(users: f64, local_eps: f64, delta: f64, stronger: i32, upper: i32) -> f64;
}

fn main() {
    let numbers: Vec<f64> = env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let [users, local_eps, delta] = numbers[..] else { panic!("usage: calculator USERS LOCAL_EPS DELTA") };
    // Safety: the functions take numbers only, and return NaN outside of their domain.
    let eps = |upper| unsafe { sb_clones_epsilon(users, local_eps, delta, 1, upper) };
    assert_eq!(unsafe { sb_abi() }, 1, "the library has another ABI than this program");
    println!("{} {}", eps(0), eps(1));
}
