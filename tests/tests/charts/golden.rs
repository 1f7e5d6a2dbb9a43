//! Both majors of helm render what the golden files say.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::tools::{HELMS, assert_same, files, objects_of, render, text, title, tool};

#[test]
fn both_helms_render_every_golden_file() -> Result<()> {
    assert_eq!(files("charts/matrix")?, files("charts/golden")?);
    for helm in HELMS {
        let Some(program) = tool(helm) else { return Ok(()) };
        for name in files("charts/matrix")? {
            let rendered =
                render(&program, "charts/caipe-operator", &text(&format!("charts/matrix/{name}"))?);
            let mut rendered = rendered.with_context(|| format!("{helm}: {name}"))?;
            rendered.retain(|object| object["kind"] != "CustomResourceDefinition");
            let golden = objects_of(&format!("charts/golden/{name}"))?;
            assert_eq!(titles(&rendered), titles(&golden), "{helm}: {name}");
            for (object, expected) in rendered.iter().zip(&golden) {
                let what = format!("{helm}: {name}: {}; run `make generate`", title(expected));
                assert_same(object, expected, &what);
            }
        }
    }
    Ok(())
}

fn titles(objects: &[Value]) -> Vec<String> {
    objects.iter().map(title).collect()
}
