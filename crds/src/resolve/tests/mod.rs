//! A resource and an environment, resolved.

mod agents;
mod budgets;
mod memory;
mod models;
mod servers;
mod settings;
mod single_agent;

use std::collections::BTreeMap;

use super::{Target, resolve, resolve_for};
use crate::rendered::RenderedSpec;
use crate::resource::CaipeSupervisor;
use crate::{default_resource, read_resource};

/// Variables, as name and value.
type Vars<'a> = &'a [(&'a str, &'a str)];

fn env(variables: &[(&str, &str)]) -> BTreeMap<String, String> {
    variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn resource(spec: &str) -> CaipeSupervisor {
    let spec = spec.replace('\n', "\n  ");
    let yaml = format!(
        "apiVersion: caipe.io/v1alpha1\nkind: CaipeSupervisor\nmetadata: {{ name: platform }}\nspec:\n  {spec}\n"
    );
    read_resource(&yaml).unwrap_or_else(|faults| panic!("{faults}\n{yaml}"))
}

fn default_spec(variables: &[(&str, &str)]) -> RenderedSpec {
    resolve(&default_resource(), &env(variables)).unwrap_or_else(|faults| panic!("{faults}")).spec
}

fn faults(resource: &CaipeSupervisor, variables: &[(&str, &str)]) -> Vec<String> {
    let faults = resolve(resource, &env(variables)).map(|resolved| resolved.spec).unwrap_err();
    faults.into_iter().map(|fault| fault.to_string()).collect()
}

fn cluster(config_maps: &[(&str, &[(&str, &str)])]) -> Target {
    let maps = config_maps.iter().map(|(name, keys)| ((*name).to_owned(), env(keys)));
    Target::Cluster { namespace: "ns".to_owned(), config_maps: maps.collect() }
}
