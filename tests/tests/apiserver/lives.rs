//! Known changes of objects of each kind, and the watches that follow them.

use serde_json::{Value, json};

use super::requests::{Ask, DEPLOYMENTS, MAPS, THINGS, deployment, map, thing};
use super::watches::MARK;

/// A kind of object whose changes are watched.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// The path of its list in the namespace.
    pub(crate) list: &'static str,
    object: fn(&str, usize) -> Value,
    /// A patch that changes what is wanted.
    change: fn(usize) -> Value,
}

pub(crate) const KINDS: [Kind; 3] = [
    Kind {
        list: MAPS,
        object: |name, number| map(name, json!({ "a": number.to_string() })),
        change: |number| json!({ "data": { "a": number.to_string() } }),
    },
    Kind {
        list: THINGS,
        object: |name, number| thing(name, json!({ "count": number })),
        change: |number| json!({ "spec": { "count": number } }),
    },
    Kind {
        list: DEPLOYMENTS,
        object: |name, number| {
            let replicas = i64::try_from(number).ok();
            deployment(name, replicas, json!([{ "name": "a", "image": "i" }]))
        },
        change: |number| json!({ "spec": { "replicas": number } }),
    },
];

impl Kind {
    fn create(self, name: &str, team: &str) -> Ask {
        let mut object = (self.object)(name, 1);
        object["metadata"]["labels"] = json!({ "team": team });
        Ask::post(self.list, object)
    }

    fn patch(self, name: &str, patch: Value) -> Ask {
        Ask::patch(&format!("{}/{name}", self.list), "merge-patch+json", patch)
    }

    fn team(self, name: &str, team: Option<&str>) -> Ask {
        self.patch(name, json!({ "metadata": { "labels": { "team": team } } }))
    }

    fn delete(self, name: &str) -> Ask {
        Ask::delete(&format!("{}/{name}", self.list))
    }

    /// Every change that a watch tells apart: of objects with this prefix.
    pub(crate) fn life(self, prefix: &str) -> Vec<Ask> {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|letter| format!("{prefix}-{letter}"));
        let status = json!({ "status": { "observedGeneration": 1 } });
        let finalizers =
            |finalizers: Value| self.patch(&a, json!({ "metadata": { "finalizers": finalizers } }));
        let path = format!("{}/{a}", self.list);
        vec![
            self.create(&a, "a").with("dryRun=All"),
            self.create(&a, "a"),
            self.create(&a, "a"),
            self.patch(&a, (self.change)(2)),
            self.patch(&a, (self.change)(2)),
            self.patch(&a, (self.change)(3)).with("dryRun=All"),
            self.team(&a, Some("b")),
            self.patch(&a, (self.change)(3)),
            Ask::patch(&format!("{path}/status"), "merge-patch+json", status),
            self.team(&a, Some("a")),
            self.team(&a, None),
            self.team(&a, Some("b")),
            finalizers(json!(["example.com/hold"])),
            self.delete(&a).with("dryRun=All"),
            self.delete(&a),
            self.delete(&a),
            self.team(&a, Some("a")),
            self.patch(&a, (self.change)(4)),
            finalizers(Value::Null),
            self.create(&a, "b"),
            Ask::apply(&path, "one", true, (self.object)(&a, 5)),
            Ask::apply(&path, "one", true, (self.object)(&a, 5)),
            self.delete(&a),
            self.create(&c, "a"),
            self.create(&b, "a"),
            self.create(&d, "b"),
            Ask::delete(self.list).with("labelSelector=team%3Da"),
        ]
    }

    /// Changes of an object that is there, such that every watch of it gets the mark.
    pub(crate) fn mark(self, name: &str, mark: &str) -> Vec<Ask> {
        let marked = |team: Option<&str>| {
            json!({
                "metadata": { "labels": { "team": team }, "annotations": { MARK: mark } },
            })
        };
        let teams = [Some("a"), None, Some("b"), Some("a")];
        teams.map(|team| self.patch(name, marked(team))).to_vec()
    }

    /// The same for an object that may be missing, with its name as the mark.
    pub(crate) fn create_or_mark(self, name: &str) -> Vec<Ask> {
        let create = Ask::apply(&format!("{}/{name}", self.list), "marker", true, (self.object)(name, 1));
        [vec![create], self.mark(name, name)].concat()
    }

    /// Watches of everything, and of a part by each kind of selector. `one` is the name of an object.
    pub(crate) fn watches(self, one: &str, query: &str) -> Vec<Ask> {
        let selectors = [
            String::new(),
            "&labelSelector=team%3Da".to_owned(),
            "&labelSelector=team%21%3Da".to_owned(),
            "&labelSelector=team+in+%28b%2Cc%29".to_owned(),
            "&labelSelector=team".to_owned(),
            "&labelSelector=%21team".to_owned(),
            format!("&fieldSelector=metadata.name%3D{one}"),
            format!("&labelSelector=team%3Db&fieldSelector=metadata.name%3D{one}"),
        ];
        let watch = |path: &str, selector: &str| {
            Ask::get(path).with(&format!("watch=true&allowWatchBookmarks=true&{query}{selector}"))
        };
        let everywhere = self.list.replace("/namespaces/default", "");
        let whole = selectors.iter().map(|selector| watch(self.list, selector));
        let metadata = selectors.iter().take(2).map(|selector| watch(self.list, selector).metadata_only());
        whole.chain(metadata).chain([watch(&everywhere, &selectors[1])]).collect()
    }
}
