//! The charts and what is made from them, seen as helm, kubectl and Argo CD see them. `charts/golden` has what the charts
//! render to, one file for each of `charts/matrix`; `make generate` writes it.

mod argocd;
mod definition;
mod golden;
mod install;
mod pods;
mod read_back;
mod rights;
mod tools;
mod values;
mod versions;
