//! Golden files of the objects. `INSTA_UPDATE=always` rewrites them.

use super::*;

#[test]
fn the_objects_match_the_golden_files() {
    for (name, spec) in SCENES {
        let mut text = String::new();
        for mut manifest in manifests(&made(spec)) {
            if let Some(spec) = manifest.pointer_mut("/data/spec.yaml") {
                // Its content has tests of its own; the prompts of the catalogue would hide everything else.
                let rendered: caipe_crds::RenderedSpec =
                    serde_saphyr::from_str(spec.as_str().unwrap()).unwrap();
                let agents: Vec<_> = rendered.agents.iter().map(|agent| agent.name.as_str()).collect();
                *spec = format!("a rendered spec with {}", agents.join(", ")).into();
            }
            if let Some(hash) =
                manifest.pointer_mut("/spec/template/metadata/annotations/caipe.io~1spec-hash")
            {
                *hash = "a hash".into();
            }
            text += "---\n";
            text += &serde_saphyr::to_string(&manifest).unwrap();
        }
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path("../golden");
        settings.set_prepend_module_to_snapshot(false);
        settings.bind(|| insta::assert_snapshot!(name, text));
    }
}
