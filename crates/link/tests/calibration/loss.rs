use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use pushlab_link::loss::Loss;
use pushlab_link::profile::{Profile, Way};

use crate::traffic::{network, pair, profile, wait_until};

const PACKETS: u32 = 20_000;
/// Packets under way at most: the receiver's socket holds some 250, however busy the machine is.
const WINDOW: usize = 160;
/// Standard deviations that chance exceeds once in 1000 times.
const DEVIATIONS: f64 = 3.29;

/// Numbers of the packets that were lost downwards.
fn losses(profile: Profile, seed: u64) -> Vec<u32> {
    let network = network(profile, seed);
    let (subject, load) = pair(&network);
    let heard = AtomicUsize::new(0);
    let arrived = thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let (mut arrived, mut datagram) = (vec![false; PACKETS as usize], [0; 4]);
            while load.recv(&mut datagram).is_ok() {
                arrived[u32::from_le_bytes(datagram) as usize] = true;
                heard.fetch_add(1, Ordering::Relaxed);
            }
            arrived
        });
        for number in 0..PACKETS {
            let lost = || network.totals().down.sum().lost_packets as usize;
            let is_full = || number as usize >= heard.load(Ordering::Relaxed) + lost() + WINDOW;
            wait_until("the packets under way have arrived", || !is_full());
            subject.send(&number.to_le_bytes()).unwrap();
        }
        receiver.join().unwrap()
    });
    let lost: Vec<u32> = (0..PACKETS).filter(|&number| !arrived[number as usize]).collect();
    let report = network.finish().unwrap();
    assert_eq!(report.overflows, 0, "the machine was too busy to carry the packets");
    assert_eq!(lost.len() as u64, report.totals.down.sum().lost_packets, "a receiver did not keep up");
    lost
}

/// `inflation`: of the variance, by packets not being lost independently.
fn assert_share(what: &str, lost: &[u32], share: f64, inflation: f64) {
    let expected = f64::from(PACKETS) * share;
    let deviation = (expected * (1.0 - share) * inflation).sqrt();
    println!("  {what}: {} lost, expected {expected:.0} ± {:.0}", lost.len(), DEVIATIONS * deviation);
    assert!((lost.len() as f64 - expected).abs() <= DEVIATIONS * deviation, "{what}: {} lost", lost.len());
}

pub fn losses_are_those_of_model_and_seed() {
    let independent = || {
        let loss = Some(Loss::Independent { probability: 0.02 });
        Profile { down: Way { loss, ..Way::default() }, up: Way::default(), ..profile("local") }
    };
    let [bursty, same, other, random] = thread::scope(|scope| {
        let run = |profile, seed| scope.spawn(move || losses(profile, seed));
        let runs =
            [run(profile("lossy"), 5), run(profile("lossy"), 5), run(profile("lossy"), 6), run(independent(), 5)];
        runs.map(|run| run.join().unwrap())
    });
    assert_eq!(bursty, same, "the same seed lost other packets");
    assert_ne!(bursty, other, "another seed lost the same packets");
    assert_share("independent", &random, 0.02, 1.0);

    let Some(Loss::Bursty { p_good_to_bad, p_bad_to_good, loss_good: 0.0, loss_bad: 1.0 }) = profile("lossy").down.loss
    else {
        panic!("the profile `lossy` loses whole bursts");
    };
    // Successive states of a chain of two are correlated by what is left of 1.
    let correlation = 1.0 - p_good_to_bad - p_bad_to_good;
    let share = p_good_to_bad / (p_good_to_bad + p_bad_to_good);
    assert_share("bursty", &bursty, share, (1.0 + correlation) / (1.0 - correlation));

    // Lengths are geometric: their mean is 1 / p and their variance (1 - p) / p².
    let bursts = bursty.iter().enumerate().filter(|&(i, &number)| i == 0 || bursty[i - 1] + 1 != number).count();
    let (mean, expected) = (bursty.len() as f64 / bursts as f64, 1.0 / p_bad_to_good);
    let deviation = (1.0 - p_bad_to_good).sqrt() / p_bad_to_good / (bursts as f64).sqrt();
    println!("  bursts: {bursts} of {mean:.2} packets, expected {expected:.2} ± {:.2}", DEVIATIONS * deviation);
    assert!((mean - expected).abs() <= DEVIATIONS * deviation, "bursts of {mean} packets instead of {expected}");
}
