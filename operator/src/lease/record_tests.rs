use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::*;

fn options(identity: &str) -> LeaseOptions {
    LeaseOptions::new("caipe-system", "caipe-operator", identity.to_owned())
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn stored(mut lease: Lease, version: &str) -> Lease {
    lease.metadata.resource_version = Some(version.to_owned());
    lease
}

#[test]
fn what_is_written_is_what_is_seen() {
    let first = stored(held(None, &options("a"), at(1)), "7");
    let expected = Seen { version: "7".into(), holder: Some("a".into()), duration: Duration::from_secs(15) };
    assert_eq!(seen(&first), Some(expected));
    let released = stored(released(&first, &options("a"), at(2)), "8");
    assert_eq!(seen(&released).map(|seen| (seen.holder, seen.version)), Some((None, "8".into())));
}

#[test]
fn renewals_and_transitions_are_recorded() {
    let spec = |lease: &Lease| lease.spec.clone().unwrap();
    let first = stored(held(None, &options("a"), at(1)), "1");
    let renewed = stored(held(Some(&first), &options("a"), at(6)), "2");
    assert_eq!(spec(&renewed).acquire_time, Some(MicroTime(at(1))));
    assert_eq!(spec(&renewed).renew_time, Some(MicroTime(at(6))));
    assert_eq!(spec(&renewed).lease_transitions, Some(0));
    let taken = held(Some(&renewed), &options("b"), at(30));
    assert_eq!(spec(&taken).acquire_time, Some(MicroTime(at(30))));
    assert_eq!(spec(&taken).lease_transitions, Some(1));
    let after = held(Some(&released(&taken, &options("b"), at(40))), &options("c"), at(41));
    assert_eq!(spec(&after).lease_transitions, Some(2));
}

#[test]
fn labels_of_others_stay() {
    let mut lease = held(None, &options("a"), at(1));
    lease.metadata.labels.get_or_insert_default().insert("team".into(), "platform".into());
    let taken = held(Some(&lease), &options("b"), at(2));
    assert_eq!(taken.metadata.labels, lease.metadata.labels);
}

#[test]
fn a_lease_of_somebody_elses_making_is_read_with_care() {
    let spec = |holder: Option<&str>, duration| LeaseSpec {
        holder_identity: holder.map(ToOwned::to_owned),
        lease_duration_seconds: duration,
        ..LeaseSpec::default()
    };
    for (lease, holder, seconds) in [
        (Lease::default(), None, 0),
        (Lease { spec: Some(spec(Some(""), Some(-3))), ..Lease::default() }, None, 0),
        (Lease { spec: Some(spec(Some("x"), None)), ..Lease::default() }, Some("x"), 0),
    ] {
        assert_eq!(seen(&lease), None, "it has no version");
        let seen = seen(&stored(lease, "1")).unwrap();
        assert_eq!((seen.holder.as_deref(), seen.duration), (holder, Duration::from_secs(seconds)));
    }
}

#[test]
fn only_a_new_lease_gets_an_owner() {
    let owner = OwnerReference { name: "operator".into(), ..OwnerReference::default() };
    let options = LeaseOptions { owner: Some(owner.clone()), ..options("a") };
    assert_eq!(held(None, &options, at(1)).metadata.owner_references, Some(vec![owner]));
    // Changing it would take the right to delete the lease.
    assert_eq!(held(Some(&Lease::default()), &options, at(1)).metadata.owner_references, None);
}
