use serde_json::json;

use super::owned::tests::owned;
use super::*;

fn key() -> Key {
    Key::new("n", "p")
}

fn child(kind: Kind, name: &str) -> Child {
    Child::bare(kind, name)
}

#[test]
fn the_same_again_is_no_news() {
    let world = World::default();
    assert!(world.put(&key(), Seen::Child(child(Kind::Service, "p"))));
    assert!(!world.put(&key(), Seen::Child(child(Kind::Service, "p"))));
    let other = Child { owned: owned(&json!({ "f:spec": {} })), ..child(Kind::Service, "p") };
    assert!(world.put(&key(), Seen::Child(other)), "somebody took a field");
    assert!(world.remove(&key(), Kind::Service, "p"));
    assert!(!world.remove(&key(), Kind::Service, "p"));
    assert_eq!(*world.around(&key()), Around::default());
}

#[test]
fn an_answer_does_not_undo_what_the_watch_has_brought_since() {
    let deployment =
        |available| (child(Kind::Deployment, "p"), Workload { available, ..Workload::default() });
    let available =
        |world: &World| world.around(&key()).workloads.get("p").map(|workload| workload.available);
    for (case, brought, expected) in
        [("nothing came in between", None, Some(0)), ("its pod is there already", Some(1), Some(1))]
    {
        let world = World::default();
        let before = world.known(&key(), Kind::Deployment, "p");
        if let Some(number) = brought {
            let (child, workload) = deployment(number);
            world.put(&key(), Seen::Deployment(child, workload));
        }
        let (child, workload) = deployment(0);
        world.wrote(&key(), &child, Some(workload), &before);
        assert_eq!(available(&world), expected, "{case}");
    }
    let world = World::default();
    world.put(&key(), Seen::Child(child(Kind::Service, "p")));
    let before = world.known(&key(), Kind::Service, "p");
    world.remove(&key(), Kind::Service, "p");
    world.wrote(&key(), &child(Kind::Service, "p"), None, &before);
    assert_eq!(*world.around(&key()), Around::default(), "somebody deleted it while it was written");
}

#[test]
fn what_a_new_list_lacks_is_gone() {
    let world = World::default();
    world.put(&key(), Seen::Child(child(Kind::Service, "p")));
    world.put(&key(), Seen::Child(child(Kind::Service, "p-a")));
    world.put(&key(), Seen::Child(child(Kind::ConfigMap, "p.spec")));
    let listed = HashSet::from([(key(), "p".to_owned())]);
    assert!(world.retain(Kind::Service, Some("elsewhere"), &listed).is_empty());
    assert_eq!(world.retain(Kind::Service, Some("n"), &listed), vec![key()]);
    let left: Vec<String> = world.around(&key()).children.keys().map(|(_, name)| name.clone()).collect();
    assert_eq!(left, ["p.spec", "p"]);
}

#[test]
fn who_refers_to_an_object_is_told_of_its_changes() {
    let world = World::default();
    let place = ("n".to_owned(), "token".to_owned());
    let secrets = |secrets: &[&str]| {
        let mut names = Names::default();
        names.secrets = secrets.iter().map(|name| (*name).to_owned()).collect();
        names
    };
    world.uses(&key(), secrets(&["token"]));
    assert_eq!(world.put_version(Referred::Secret, &place, Some(&"1".to_owned())), vec![key()]);
    assert!(world.put_version(Referred::Secret, &place, Some(&"1".to_owned())).is_empty());
    assert!(world.put_version(Referred::ConfigMap, &place, Some(&"1".to_owned())).is_empty());
    assert_eq!(world.version(Referred::Secret, "n", "token").as_deref(), Some("1"));
    assert_eq!(world.retain_versions(Referred::Secret, None, &HashSet::new()), vec![key()]);
    assert_eq!(world.version(Referred::Secret, "n", "token"), None);
    world.uses(&key(), secrets(&["other"]));
    assert!(world.put_version(Referred::Secret, &place, Some(&"2".to_owned())).is_empty());
    world.forget(&key());
    let other = ("n".to_owned(), "other".to_owned());
    assert!(world.put_version(Referred::Secret, &other, Some(&"1".to_owned())).is_empty());
}

#[test]
fn an_object_is_known_by_its_owner_even_without_its_label() {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    let owner = crate::supervisor::owner("p", "u");
    let meta = ObjectMeta {
        namespace: Some("n".to_owned()),
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    };
    assert_eq!(child::key(&meta), Some(key()));
    assert_eq!(child::key(&ObjectMeta { owner_references: None, ..meta }), None);
}
