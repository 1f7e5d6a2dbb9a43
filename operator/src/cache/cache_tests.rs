use serde_json::json;

use super::managed_fields::tests::managed_fields;
use super::*;

fn key() -> Key {
    Key::new("n", "p")
}

fn child(kind: Kind, name: &str) -> Child {
    Child::bare(kind, name)
}

#[test]
fn an_equal_object_changes_nothing() {
    let cache = Cache::default();
    assert!(cache.put(&key(), Extract::Child(child(Kind::Service, "p"))));
    assert!(!cache.put(&key(), Extract::Child(child(Kind::Service, "p"))));
    let other =
        Child { managed_fields: managed_fields(&json!({ "f:spec": {} })), ..child(Kind::Service, "p") };
    assert!(cache.put(&key(), Extract::Child(other)), "somebody took a field");
    assert!(cache.remove(&key(), Kind::Service, "p"));
    assert!(!cache.remove(&key(), Kind::Service, "p"));
    assert_eq!(*cache.observed(&key()), ObservedState::default());
}

#[test]
fn an_answer_does_not_undo_what_the_watch_has_brought_since() {
    let deployment =
        |available| (child(Kind::Deployment, "p"), Workload { available, ..Workload::default() });
    let available =
        |cache: &Cache| cache.observed(&key()).workloads.get("p").map(|workload| workload.available);
    for (case, brought, expected) in
        [("nothing came in between", None, Some(0)), ("its pod is there already", Some(1), Some(1))]
    {
        let cache = Cache::default();
        let before = cache.known(&key(), Kind::Deployment, "p");
        if let Some(number) = brought {
            let (child, workload) = deployment(number);
            cache.put(&key(), Extract::Deployment(child, workload));
        }
        let (child, workload) = deployment(0);
        cache.record_write(&key(), &child, Some(workload), &before);
        assert_eq!(available(&cache), expected, "{case}");
    }
    let cache = Cache::default();
    cache.put(&key(), Extract::Child(child(Kind::Service, "p")));
    let before = cache.known(&key(), Kind::Service, "p");
    cache.remove(&key(), Kind::Service, "p");
    cache.record_write(&key(), &child(Kind::Service, "p"), None, &before);
    assert_eq!(*cache.observed(&key()), ObservedState::default(), "somebody deleted it while it was written");
}

#[test]
fn what_a_new_list_lacks_is_gone() {
    let cache = Cache::default();
    cache.put(&key(), Extract::Child(child(Kind::Service, "p")));
    cache.put(&key(), Extract::Child(child(Kind::Service, "p-a")));
    cache.put(&key(), Extract::Child(child(Kind::ConfigMap, "p.spec")));
    let listed = HashSet::from([(key(), "p".to_owned())]);
    assert!(cache.retain(Kind::Service, Some("elsewhere"), &listed).is_empty());
    assert_eq!(cache.retain(Kind::Service, Some("n"), &listed), vec![key()]);
    let left: Vec<Arc<str>> = cache.observed(&key()).children.keys().map(|(_, name)| name.clone()).collect();
    assert_eq!(left, ["p.spec".into(), "p".into()]);
}

#[test]
fn a_changed_reference_queues_its_supervisors() {
    let cache = Cache::default();
    let place = ("n".to_owned(), "token".to_owned());
    let secrets = |secrets: &[&str]| {
        let mut names = Names::default();
        names.secrets = secrets.iter().map(|name| (*name).to_owned()).collect();
        names
    };
    cache.set_references(&key(), secrets(&["token"]));
    assert_eq!(cache.put_version(Kind::Secret, &place, Some(&"1".to_owned())), vec![key()]);
    assert!(cache.put_version(Kind::Secret, &place, Some(&"1".to_owned())).is_empty());
    assert!(cache.put_version(Kind::ConfigMap, &place, Some(&"1".to_owned())).is_empty());
    assert_eq!(cache.version(Kind::Secret, "n", "token").as_deref(), Some("1"));
    assert_eq!(cache.retain_versions(Kind::Secret, None, &HashSet::new()), vec![key()]);
    assert_eq!(cache.version(Kind::Secret, "n", "token"), None);
    cache.set_references(&key(), secrets(&["other"]));
    assert!(cache.put_version(Kind::Secret, &place, Some(&"2".to_owned())).is_empty());
    cache.forget(&key());
    let other = ("n".to_owned(), "other".to_owned());
    assert!(cache.put_version(Kind::Secret, &other, Some(&"1".to_owned())).is_empty());
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
    assert_eq!(managed_object::key(&meta), Some(key()));
    assert_eq!(managed_object::key(&ObjectMeta { owner_references: None, ..meta }), None);
}

#[test]
fn the_content_of_a_config_map_is_dropped_with_its_last_user() {
    let (cache, other) = (Cache::default(), Key::new("n", "q"));
    let names = || {
        let mut names = Names::default();
        names.config_maps.insert("prompts".to_owned());
        names
    };
    let content = || Some(Arc::new(ConfigMapContent { version: "1".to_owned(), ..Default::default() }));
    let is_cached = || cache.content("n", "prompts", "1").is_some();
    cache.put_content("n", "prompts", content());
    assert!(!is_cached(), "no supervisor refers to it");
    cache.set_references(&key(), names());
    cache.set_references(&other, names());
    cache.put_content("n", "prompts", content());
    cache.forget(&key());
    assert!(is_cached());
    assert_eq!(cache.content("n", "prompts", "2"), None);
    cache.set_references(&other, Names::default());
    assert!(!is_cached());
}
