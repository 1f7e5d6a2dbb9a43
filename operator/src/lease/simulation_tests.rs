//! Contenders with clocks of their own, over a network that delays, loses and delivers late: never two leaders.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::prelude::*;

use super::*;

const SPAN: Duration = Duration::from_secs(15);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn seen(version: &str, holder: &str) -> Seen {
    let holder = Some(holder.to_owned()).filter(|holder| !holder.is_empty());
    Seen { version: version.to_owned(), holder, duration: SPAN }
}

/// The version and the holder of the lease, if it is there.
type Stored = Option<(u64, Option<String>)>;

/// What was wanted, the lease after it, and whether it was done.
type Served = (BuildInputs, Stored, bool);

/// A lease, contenders with clocks of their own, and a network that delays, loses and delivers late.
struct Cache {
    jitter: u64,
    now: Duration,
    lease: Stored,
    version: u64,
    contenders: Vec<Process>,
    queue: BinaryHeap<Reverse<(Duration, u64, Happening)>>,
    serial: u64,
    faults: Faults,
    /// Who was seen leading, each time another one than before.
    leaders: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
struct Faults {
    spans: Spans,
    /// Of a thousand messages, how many are lost.
    lost: u64,
    /// Longest delay of a message, in milliseconds.
    delay: u64,
    /// Whether the lease is deleted now and then.
    deletions: bool,
    /// Whether processes are killed, and told to end.
    ends: bool,
    /// Whether the next process in the same place has the same identity, as in a pod.
    pods: bool,
}

struct Process {
    contender: Contender,
    identity: String,
    /// How fast its clock runs, in thousandths, and what it showed at the start.
    speed: u32,
    offset: Duration,
    /// Messages of an earlier act, or of an earlier process in the same place, are not heard.
    act: u64,
}

impl Process {
    fn clock(&self, now: Duration) -> Moment {
        self.offset + now * self.speed / 1000
    }

    fn leads(&self, now: Duration) -> bool {
        self.contender.leads(self.clock(now))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// A contender acts.
    Refresh { who: usize, act: u64 },
    /// A request reaches the server.
    Request { who: usize, act: u64, sent: Moment, wanted: BuildInputs },
    /// An answer, or that none came in time, reaches a contender.
    Heard { who: usize, act: u64, sent: Moment, answer: Option<Served> },
    /// A process is killed, and another one starts in its place.
    Kill { who: usize },
    /// A process ends as it should, and another one starts in its place.
    End { who: usize },
    /// The lease is deleted.
    Delete,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum BuildInputs {
    Read,
    Create(String),
    Replace(u64, Option<String>),
}

impl Cache {
    fn new(seed: u64, faults: Faults) -> Self {
        let mut cache = Self {
            jitter: seed,
            now: Duration::ZERO,
            lease: None,
            version: 0,
            contenders: Vec::new(),
            queue: BinaryHeap::new(),
            serial: 0,
            faults,
            leaders: Vec::new(),
        };
        for who in 0..3 {
            let process = cache.process(who);
            let act = process.act;
            cache.contenders.push(process);
            cache.happens(0, Happening::Refresh { who, act });
            if faults.ends {
                let (kill, end) = (cache.below(200_000), cache.below(200_000));
                cache.happens(kill, Happening::Kill { who });
                cache.happens(end, Happening::End { who });
            }
        }
        if faults.deletions {
            let at = cache.below(200_000);
            cache.happens(at, Happening::Delete);
        }
        cache
    }

    fn process(&mut self, who: usize) -> Process {
        let identity = if self.faults.pods { who.to_string() } else { format!("{who}-{}", self.serial) };
        let speed = 850 + u32::try_from(self.below(350)).unwrap();
        let offset = Duration::from_millis(self.below(1_000_000_000));
        let contender = Contender { next: offset, ..Contender::new(&identity, self.faults.spans) };
        Process { contender, identity, speed, offset, act: self.serial }
    }

    /// A word of `SplitMix64`.
    fn word(&mut self) -> u64 {
        self.jitter = self.jitter.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.jitter ^ (self.jitter >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.word() % bound.max(1)
    }

    fn happens(&mut self, milliseconds: u64, happening: Happening) {
        self.serial += 1;
        let at = self.now + Duration::from_millis(milliseconds);
        self.queue.push(Reverse((at, self.serial, happening)));
    }

    /// Runs for that long; says when two led.
    fn run(&mut self, until: Duration) -> Result<(), String> {
        while self.queue.peek().is_some_and(|Reverse((at, ..))| *at <= until) {
            let Some(Reverse((at, _, happening))) = self.queue.pop() else { break };
            self.now = at;
            self.happen(happening);
            let leaders: Vec<_> =
                self.contenders.iter().filter(|p| p.leads(at)).map(|p| p.identity.clone()).collect();
            if leaders.len() > 1 {
                return Err(format!("at {at:?}, all of these lead: {leaders:?}"));
            }
            if let Some(leader) = leaders.first()
                && self.leaders.last() != Some(leader)
            {
                self.leaders.push(leader.clone());
            }
        }
        Ok(())
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Refresh { who, act } => self.wake(who, act),
            Happening::Request { who, act, sent, wanted } => {
                let went_well = self.serve(&wanted);
                if self.below(1000) >= self.faults.lost {
                    let delay = self.below(self.faults.delay);
                    let answer = Some((wanted, self.lease.clone(), went_well));
                    self.happens(delay, Happening::Heard { who, act, sent, answer });
                }
            }
            Happening::Heard { who, act, sent, answer } => self.record_answer(who, act, sent, answer),
            Happening::Kill { who } => self.restart(who),
            Happening::End { who } => {
                let (process, now) = (&mut self.contenders[who], self.now);
                let version = process.contender.resign(process.clock(now));
                if let Some(version) = version.and_then(|version| version.parse().ok()) {
                    let (delay, sent) = (self.below(self.faults.delay), Duration::ZERO);
                    let wanted = BuildInputs::Replace(version, None);
                    self.happens(delay, Happening::Request { who, act: u64::MAX, sent, wanted });
                }
                self.restart(who);
            }
            // One that knows of no leader cannot wait for one.
            Happening::Delete if self.contenders.iter().all(|p| p.contender.known.is_some()) => {
                self.lease = None;
            }
            Happening::Delete => {}
        }
    }

    fn restart(&mut self, who: usize) {
        let process = self.process(who);
        let (act, offset) = (process.act, process.clock(self.now));
        self.contenders[who] = process;
        self.contenders[who].contender.next = offset;
        let delay = self.below(5000);
        self.happens(delay, Happening::Refresh { who, act });
        if self.faults.ends {
            let (kill, end) = (self.below(400_000), self.below(400_000));
            self.happens(kill, Happening::Kill { who });
            self.happens(end, Happening::End { who });
        }
    }

    fn wake(&mut self, who: usize, act: u64) {
        let process = &self.contenders[who];
        if process.act != act {
            return;
        }
        let (sent, speed, identity) = (process.clock(self.now), process.speed, process.identity.clone());
        let wanted = match process.contender.act(sent) {
            Act::Wait(time) => {
                let time = u64::try_from((time * 1000 / speed).as_millis()).unwrap() + self.below(300);
                return self.happens(time, Happening::Refresh { who, act });
            }
            Act::Read => BuildInputs::Read,
            Act::Create => BuildInputs::Create(identity),
            Act::Take(version) => BuildInputs::Replace(version.parse().unwrap_or(u64::MAX), Some(identity)),
        };
        self.contenders[who].act = self.serial + 1;
        let act = self.serial + 1;
        // The deadline of the call; a request may still arrive after it.
        self.happens(5000, Happening::Heard { who, act, sent, answer: None });
        if self.below(1000) >= self.faults.lost {
            let late = if self.below(10) == 0 { 60_000 } else { self.faults.delay };
            let delay = self.below(late);
            self.happens(delay, Happening::Request { who, act, sent, wanted });
        }
    }

    /// Whether it was done.
    fn serve(&mut self, wanted: &BuildInputs) -> bool {
        let holder = match (wanted, &self.lease) {
            (BuildInputs::Read, _) => return true,
            (BuildInputs::Create(holder), None) => Some(holder.clone()),
            (BuildInputs::Replace(version, holder), Some((current, _))) if version == current => {
                holder.clone()
            }
            _ => return false,
        };
        self.version += 1;
        self.lease = Some((self.version, holder));
        true
    }

    fn record_answer(&mut self, who: usize, act: u64, sent: Moment, answer: Option<Served>) {
        let jitter = f64::from(u32::try_from(self.below(1000)).unwrap()) / 1000.0;
        let process = &mut self.contenders[who];
        if process.act != act {
            return;
        }
        let seen = |lease: Stored| {
            lease.map(|(version, holder)| seen(&version.to_string(), holder.as_deref().unwrap_or_default()))
        };
        let answer = match answer {
            None => Answer::Failed,
            Some((_, _, false)) => Answer::Conflict,
            Some((BuildInputs::Read, lease, _)) => seen(lease).map_or(Answer::Absent, Answer::Found),
            Some((_, lease, _)) => seen(lease).map_or(Answer::Failed, Answer::Written),
        };
        let now = process.clock(self.now);
        process.contender.learn(sent, now, answer, jitter);
        self.serial += 1;
        let act = self.serial;
        self.contenders[who].act = act;
        self.happens(0, Happening::Refresh { who, act });
    }
}

fn faults() -> impl Strategy<Value = Faults> {
    let spans = Just(Spans::of(SPAN));
    (spans, 0..600u64, 1..8000u64, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(spans, lost, delay, deletions, ends, pods)| Faults {
            spans,
            lost,
            delay,
            // A process that has just started knows of no leader to wait for.
            deletions: deletions && !ends,
            ends,
            pods,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn there_are_never_two_leaders(seed in any::<u64>(), faults in faults()) {
        let mut cache = Cache::new(seed, faults);
        cache.run(seconds(600)).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn there_is_a_leader_where_the_network_is_not_too_bad(seed in any::<u64>(), ends in any::<bool>()) {
        let faults = Faults { spans: Spans::of(SPAN), lost: 50, delay: 500, deletions: false, ends, pods: ends };
        let mut cache = Cache::new(seed, faults);
        cache.run(seconds(60)).map_err(TestCaseError::fail)?;
        prop_assert!(!cache.leaders.is_empty());
        let first = cache.leaders.len();
        cache.run(seconds(1200)).map_err(TestCaseError::fail)?;
        prop_assert!(!ends || cache.leaders.len() > first, "nobody followed {:?}", cache.leaders);
    }
}

/// Rare ones that were found once: a write that arrives after its lease was deleted, and one who led before.
#[test]
fn there_are_never_two_leaders_over_a_deleted_lease() {
    let faults =
        Faults { spans: Spans::of(SPAN), lost: 100, delay: 2000, deletions: true, ends: false, pods: false };
    for seed in (0..3000).step_by(4) {
        assert_eq!(Cache::new(seed, faults).run(seconds(300)), Ok(()), "{seed}");
    }
}

/// The world is one in which there can be two.
#[test]
fn the_test_notices_two_leaders() {
    let spans = Spans { deadline: SPAN * 2, ..Spans::of(SPAN) };
    let faults = Faults { spans, lost: 200, delay: 4000, deletions: false, ends: false, pods: false };
    let found = (0..200).filter(|seed| Cache::new(*seed, faults).run(seconds(600)).is_err()).count();
    assert!(found > 20, "a leader that leads for too long was noticed {found} times only");
}

/// A process that restarts in its pod leads within a second, whether the last request of the earlier one arrives before
/// its first request, between two of them, or after all of them.
#[test]
fn a_process_that_restarts_in_its_pod_leads_at_once() {
    let faults =
        Faults { spans: Spans::of(SPAN), lost: 0, delay: 1, deletions: false, ends: false, pods: true };
    let late = BuildInputs::Replace(1, Some("pod".to_owned()));
    for arrival in 0..4 {
        let (mut cache, mut now) = (Cache::new(0, faults), seconds(100));
        (cache.lease, cache.version) = (Some((1, Some("pod".to_owned()))), 1);
        let mut contender = Contender { next: now, ..Contender::new("pod", faults.spans) };
        for step in 0..6 {
            if step == arrival {
                cache.serve(&late);
            }
            let (version, holder) = cache.lease.clone().unwrap();
            let current = seen(&version.to_string(), &holder.unwrap());
            let answer = match contender.act(now) {
                Act::Wait(_) if contender.leads(now) => break,
                Act::Wait(time) => {
                    now += time;
                    continue;
                }
                Act::Read => Answer::Found(current),
                Act::Take(version) => {
                    let wanted = BuildInputs::Replace(version.parse().unwrap(), Some("pod".to_owned()));
                    if cache.serve(&wanted) {
                        Answer::Written(seen(&cache.version.to_string(), "pod"))
                    } else {
                        Answer::Conflict
                    }
                }
                Act::Create => panic!("the lease is there"),
            };
            contender.learn(now, now, answer, 0.0);
        }
        assert!(contender.leads(now) && now <= seconds(101), "{arrival}: {now:?}");
        assert!(!cache.serve(&late), "{arrival}: what arrives later has no effect");
    }
}

/// Another pod takes the lease only after the whole duration, counted from the restarted process's last write.
#[test]
fn another_pod_waits_for_a_restarted_process() {
    let mut other = Contender::new("other", Spans::of(SPAN));
    for (at, version) in [(0, "1"), (12, "2")] {
        other.learn(seconds(at), seconds(at), Answer::Found(seen(version, "pod")), 0.0);
    }
    for at in (14..27).step_by(2) {
        other.learn(seconds(at), seconds(at), Answer::Found(seen("2", "pod")), 0.0);
        assert!(matches!(other.act(seconds(at)), Act::Wait(_)), "{at}");
    }
    other.learn(seconds(27), seconds(27), Answer::Found(seen("2", "pod")), 0.0);
    assert_eq!(other.act(seconds(27)), Act::Take("2".to_owned()));
}
