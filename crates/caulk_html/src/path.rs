//! The path that keeps a container alive, as a picture: root → ... → container → element → graph.

use maud::{Markup, html};

use crate::input::FindingCard;
use crate::words;

/// Links of a path that are drawn; of a longer one the middle is left out.
const LINKS: usize = 9;
/// Characters of a link.
const TEXT: usize = 80;

/// What a link of the path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    Root,
    Between,
    Gap,
    Container,
    Element,
    Graph,
}

impl Link {
    const fn class(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Between => "between",
            Self::Gap => "gap",
            Self::Container => "container",
            Self::Element => "element",
            Self::Graph => "graph",
        }
    }

    const fn label(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Between => "",
            Self::Gap => "left out",
            Self::Container => "container",
            Self::Element => "elements",
            Self::Graph => "graph",
        }
    }
}

/// The path; nothing where none is known.
pub(crate) fn picture(card: &FindingCard) -> Markup {
    let links = links(card);
    html! {
        @if links.len() > 1 {
            ol.path aria-label="What keeps the memory alive" {
                @for (link, text) in &links {
                    li class=(link.class()) {
                        @if !link.label().is_empty() { span.link-label { (link.label()) } }
                        code { (words::plain(text, TEXT)) }
                    }
                }
            }
        }
    }
}

fn links(card: &FindingCard) -> Vec<(Link, String)> {
    let mut links: Vec<(Link, String)> = Vec::new();
    let path = &card.path;
    let cut = path.len().saturating_sub(LINKS);
    for (index, text) in path.iter().enumerate() {
        let link = match index {
            0 if path.len() > 1 => Link::Root,
            _ if index + 1 == path.len() => Link::Container,
            _ => Link::Between,
        };
        match (cut > 0, index) {
            (true, 4) => links.push((Link::Gap, format!("{cut} links"))),
            (true, index) if index > 4 && index < 4 + cut => {}
            _ => links.push((link, text.clone())),
        }
    }
    if path.is_empty() && !card.holder.is_empty() {
        links.push((Link::Container, card.holder.clone()));
    }
    if !links.is_empty() {
        let further = [(Link::Element, &card.elements), (Link::Graph, &card.graph)];
        links.extend(
            further.into_iter().filter(|(_, text)| !text.is_empty()).map(|(link, text)| (link, text.clone())),
        );
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_begins_at_its_root_and_ends_in_what_is_kept() {
        let path = ["module __main__", "attribute history", "list"].map(str::to_owned).to_vec();
        let card = FindingCard {
            path,
            elements: "4 per epoch".into(),
            graph: "900 nodes".into(),
            ..FindingCard::default()
        };
        let kinds: Vec<Link> = links(&card).into_iter().map(|(link, _)| link).collect();
        assert_eq!(kinds, [Link::Root, Link::Between, Link::Container, Link::Element, Link::Graph]);
        let long = FindingCard { path: vec!["link".into(); 40], ..FindingCard::default() };
        // One stands for those that are left out.
        assert_eq!(links(&long).len(), LINKS + 1);
    }
}
