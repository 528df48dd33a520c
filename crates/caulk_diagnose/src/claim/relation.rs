//! How claims relate to each other and to the source, stated after they are made, and what follows for each. The order is that
//! in which [`crate::pipeline`] asks for them.

use caulk_core::{
    Advice, Cause, Diagnostic, Evidence, Grows, Growth, LeakClass, Link, LinkEvent, Place, ProcessRef, Rate,
    Remedy, Site, SiteRole, Why,
};

use super::{Claim, Observed, Share, Standing, Witness};

/// A fact about a claim.
#[derive(Debug, Clone)]
pub(crate) enum Relation<'a> {
    /// Another claim explains the same memory better: it is advice.
    Yields,
    /// Another claim has its memory, or reports the same.
    PartOf,
    /// It has this share of the growth of its series, after this part of its growth is left.
    Shares(Share, f64),
    /// A worker keeps it, for what would be this class elsewhere.
    InWorker(LeakClass),
    /// The workers of its pool grow together.
    OfPool,
    /// So many processes do the same, with this growth in all.
    SameWork(u32, Option<Growth>),
    /// Threads hold the memory that these lines allocate.
    Holds(Growth, Vec<Site>),
    /// This line allocates what it gains.
    AllocatedAt(Site, Evidence),
    /// The record of a GPU has lines of its memory.
    OnGpu(Evidence),
    /// The only line in source that opens such files.
    OpenedAt(Site),
    /// A statement stores what its line makes.
    Stored(Stored),
    /// A pattern in source explains it.
    Explained(&'a Diagnostic, PatternAt),
    /// The pattern is the only one of its class in source: so its line is known.
    OnlyPlace(&'a Diagnostic, Witness),
    /// The source knows it by a closer class.
    Closer(&'a Diagnostic),
    /// The source has its pattern, here and at other places.
    InSource(&'a Diagnostic, Vec<Place>),
}

/// Where a pattern is that explains a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatternAt {
    /// At the line of the claim.
    Line,
    /// At a line that calls it.
    Caller,
}

/// How a value is stored.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    /// In which container.
    pub(crate) container: String,
    /// How fast it grows.
    pub(crate) rate: Rate,
    /// The statement.
    pub(crate) statement: Site,
}

/// Relations, each with the index of its claim.
pub(crate) type Relations<'a> = Vec<(usize, Relation<'a>)>;

/// The claims in view of the relations that are stated of them.
pub(crate) fn settle<'a>(claims: Vec<Claim>, state: impl FnOnce(&[Claim]) -> Relations<'a>) -> Vec<Claim> {
    let relations = state(&claims);
    let mut settled: Vec<Option<Claim>> = claims.into_iter().map(Some).collect();
    for (at, relation) in relations {
        settled[at] = settled[at].take().and_then(|claim| claim.related(relation));
    }
    settled.into_iter().flatten().collect()
}

/// The same relation of each claim that `holds`.
pub(crate) fn of_each<'a>(
    claims: &[Claim],
    holds: impl Fn(&Claim) -> bool,
    relation: impl Fn(&Claim) -> Relation<'a>,
) -> Relations<'a> {
    let those = claims.iter().enumerate().filter(|(_, claim)| holds(claim));
    those.map(|(at, claim)| (at, relation(claim))).collect()
}

impl Claim {
    /// The claim in view of a relation; `None` if another claim reports it.
    fn related(self, relation: Relation<'_>) -> Option<Self> {
        let claim = match relation {
            Relation::PartOf => return None,
            Relation::Yields => Self { yields: true, ..self },
            Relation::Shares(share, _) => Self { share, ..self },
            Relation::InWorker(_) => Self { in_worker: true, ..self },
            Relation::Stored(_) | Relation::Explained(..) => Self { yields: false, ..self },
            Relation::Closer(pattern) => Self { pattern: Some(pattern.class), ..self },
            _ => self,
        };
        Some(Self { observed: claim.observed.related(relation), ..claim })
    }

    /// The same claim of a process in which a sibling's container grows by `part` of its rate. `line`: the line there that
    /// allocates, if this explains it.
    pub(crate) fn in_sibling(self, process: ProcessRef, part: f64, line: Option<&Observed>) -> Self {
        let observed = Observed { process, ..self.observed.scaled(part) };
        let observed = match line {
            Some(line) => observed.like_sibling(line),
            None => observed,
        };
        Self { observed, ..self }
    }
}

impl Observed {
    fn related(self, relation: Relation<'_>) -> Self {
        match relation {
            Relation::Yields | Relation::PartOf => self,
            Relation::Shares(_, part) => self.scaled(part),
            Relation::InWorker(class) => self.shown_by(Evidence::Pattern { class }),
            Relation::OfPool => Self { standing: self.standing.max(Standing::Partial), ..self },
            Relation::SameWork(count, growth) => self.of_processes(count, growth),
            Relation::Holds(growth, lines) => self.holding(growth, lines),
            Relation::AllocatedAt(site, evidence) => self.at(allocates(site)).shown_by(evidence),
            Relation::OnGpu(evidence) => self.shown_by(evidence),
            Relation::OpenedAt(site) => self.at(site).shown_by(Evidence::OnlyPlace { opens: true }),
            Relation::Stored(stored) => self.stored(stored),
            Relation::Explained(pattern, at) => self.explained(pattern, at),
            Relation::OnlyPlace(pattern, witness) => Self {
                witness,
                sites: pattern.sites.clone(),
                container: pattern.container.clone(),
                ..self.shown_by(Evidence::OnlyPlace { opens: false })
            },
            Relation::Closer(pattern) => self.closer(pattern),
            Relation::InSource(pattern, twins) => self.in_source(pattern, twins),
        }
    }

    fn at(self, site: Site) -> Self {
        Self { sites: joined(self.sites, [site]), ..self }
    }

    fn shown_by(self, evidence: Evidence) -> Self {
        Self { evidence: joined(self.evidence, [evidence]), ..self }
    }

    /// A part of its growth.
    fn scaled(self, part: f64) -> Self {
        let growth = self.growth.map(|growth| growth.scaled(part));
        Self { growth, cause: self.cause.scaled(part), ..self }
    }

    fn like_sibling(self, line: &Self) -> Self {
        let cause = match &self.growth {
            Some(growth) => Cause::LikeSibling { container: self.container.clone(), rate: growth.rate() },
            None => self.cause,
        };
        Self {
            cause,
            standing: self.standing.max(line.standing),
            heavy: self.heavy || line.heavy,
            witness: self.witness.min(line.witness),
            ..self
        }
    }

    /// Ranks may run anywhere and keep their own figures; workers of one machine are added up.
    fn of_processes(self, count: u32, workers: Option<Growth>) -> Self {
        let process = ProcessRef { count: self.process.count.max(count), ..self.process };
        let sum = workers.as_ref().map(|sum| Evidence::Workers { count: count as usize, rate: sum.rate() });
        Self {
            process,
            evidence: joined(sum.into_iter().collect(), self.evidence),
            growth: workers.or(self.growth),
            ..self
        }
    }

    fn holding(self, growth: Growth, lines: Vec<Site>) -> Self {
        let step = |site: Site| Link {
            file: site.file,
            line: site.line,
            text: site.text,
            event: LinkEvent::AllocatesForThreads,
        };
        Self {
            witness: Witness::HeapLine,
            chain: joined(self.chain, lines.into_iter().map(step)),
            evidence: joined(self.evidence, [Evidence::MadeByThreads { rate: growth.rate() }]),
            growth: Some(growth),
            ..self
        }
    }

    fn stored(self, by: Stored) -> Self {
        let Stored { container, rate, statement } = by;
        let seen =
            Evidence::StoresInSource { statement: statement.text.clone(), container: container.clone() };
        let observed = self.shown_by(seen);
        let made = observed.sites.first().map(|made| made.line).filter(|made| *made != statement.line);
        // What is to be changed is the statement that stores.
        let sites = match made {
            Some(_) => joined(vec![statement], observed.sites.into_iter().map(allocates)),
            None => observed.sites,
        };
        Self {
            cause: Cause::Stored { container: container.clone(), rate, made },
            sites,
            standing: Standing::Whole,
            witness: Witness::HeapLine,
            remedy: Some(Advice::KeepLess(container.clone()).into()),
            container,
            ..observed
        }
    }

    fn explained(self, pattern: &Diagnostic, at: PatternAt) -> Self {
        let sites = match at {
            PatternAt::Line => self.sites,
            PatternAt::Caller => joined(pattern.sites.clone(), self.sites.into_iter().map(allocates)),
        };
        Self {
            cause: Cause::Pattern {
                class: pattern.class,
                message: pattern.message.clone(),
                rate: self.growth.as_ref().map(Growth::rate),
            },
            standing: Standing::Whole,
            witness: Witness::HeapLine,
            sites,
            container: pattern.container.clone(),
            evidence: joined(self.evidence, [Evidence::PatternAtLine]),
            remedy: of_source(pattern),
            ..self
        }
    }

    fn closer(self, pattern: &Diagnostic) -> Self {
        let cause = match self.cause {
            Cause::Grows(grows) if grows.why == Why::Class => {
                Cause::Grows(Grows { class: pattern.class, ..grows })
            }
            cause => cause,
        };
        Self { cause, remedy: of_source(pattern), ..self }
    }

    fn in_source(self, pattern: &Diagnostic, twins: Vec<Place>) -> Self {
        let is_new = |step: &Link| {
            !pattern.chain.iter().any(|known| (&known.file, known.line) == (&step.file, step.line))
        };
        let edits = |remedy: &Remedy| remedy.edit().is_some();
        let has_edits = self.remedy.as_ref().is_some_and(edits);
        let closer = of_source(pattern).filter(|remedy| !has_edits && edits(remedy));
        Self {
            chain: joined(
                pattern.chain.iter().map(Link::from).collect(),
                self.chain.into_iter().filter(is_new),
            ),
            twins: joined(self.twins, twins),
            remedy: closer.or(self.remedy),
            ..self
        }
    }
}

fn allocates(site: Site) -> Site {
    Site { role: SiteRole::Allocates, ..site }
}

fn of_source(pattern: &Diagnostic) -> Option<Remedy> {
    pattern.fix.clone().map(Remedy::from)
}

fn joined<T>(first: Vec<T>, more: impl IntoIterator<Item = T>) -> Vec<T> {
    first.into_iter().chain(more).collect()
}
