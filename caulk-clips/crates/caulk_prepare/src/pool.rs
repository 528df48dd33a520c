//! Workers that share a list of videos. One that dies of a video, or takes too long, is replaced for the next.

use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use std::vec;

use camino::Utf8PathBuf;
use caulk_clip::job::{Answer, Prepare, Request};
use caulk_clip::place;

use crate::fetch::{Fetcher, Fetching};
use crate::worker::{Worker, WorkerError};

/// Workers, and what each may take.
#[derive(Debug, Clone)]
pub struct Pool {
    /// The worker's executable.
    pub worker: Utf8PathBuf,
    /// Workers.
    pub jobs: usize,
    /// Bytes that each worker may take.
    pub memory: u64,
    /// How long one video may take.
    pub timeout: Duration,
    /// How it gets there, if it is no file of this machine.
    pub fetching: Fetching,
}

/// What one thread works with, from video to video.
#[derive(Debug, Default)]
struct Hands {
    worker: Option<Worker>,
    fetcher: Option<Fetcher>,
}

/// What was asked for, by whatever tells the caller which it is, and the answer, unless the worker died of it.
type Made<T> = (T, Result<Answer, WorkerError>);

impl Pool {
    /// Gives videos to workers, and what comes of them to `take`, one at a time.
    ///
    /// # Errors
    /// If no worker can be started, or `take` has had enough.
    pub(crate) fn work<T: Send, E: From<WorkerError>>(
        &self,
        pending: Vec<(T, Prepare)>,
        mut take: impl FnMut(T, Result<Answer, WorkerError>) -> Result<(), E>,
    ) -> Result<(), E> {
        let jobs = self.jobs.clamp(1, pending.len().max(1));
        let queue = Mutex::new(pending.into_iter());
        let (sender, results) = mpsc::sync_channel(jobs);
        thread::scope(|scope| {
            for _ in 0..jobs {
                let (queue, sender) = (&queue, sender.clone());
                scope.spawn(move || self.serve(queue, &sender));
            }
            drop(sender);
            let taken = results.iter().try_for_each(|made| made.map(|(of, answer)| take(of, answer))?);
            // Whoever waits to hand over another result finds nobody, and stops.
            drop(results);
            taken
        })
    }

    fn serve<T>(
        &self,
        queue: &Mutex<vec::IntoIter<(T, Prepare)>>,
        results: &mpsc::SyncSender<Result<Made<T>, WorkerError>>,
    ) {
        let mut hands = Hands::default();
        loop {
            let next = queue.lock().ok().and_then(|mut queue| queue.next());
            let Some((of, job)) = next else { return };
            let made = self.one(&mut hands, job).map(|answer| (of, answer));
            let stop = made.is_err();
            if results.send(made).is_err() || stop {
                return;
            }
        }
    }

    /// One video; the outer error is that there will be no other.
    fn one(&self, hands: &mut Hands, mut job: Prepare) -> Result<Result<Answer, WorkerError>, WorkerError> {
        let began = Instant::now();
        if place::is_url(&job.path) {
            job.path = match self.fetch(&mut hands.fetcher, &job.path) {
                Ok(path) => path,
                Err(error @ WorkerError::NoFetcher(_)) => return Err(error),
                Err(error) => return Ok(Err(error)),
            };
        }
        let mut worker = match hands.worker.take() {
            Some(worker) => worker,
            None => Worker::start(&self.worker, self.memory)?,
        };
        let left = self.timeout.saturating_sub(began.elapsed());
        match worker.ask(&Request::Prepare(job), Some(left)) {
            Ok((answer, _)) => {
                hands.worker = Some(worker);
                Ok(Ok(answer))
            }
            Err(WorkerError::Late(_)) => Ok(Err(WorkerError::Late(self.timeout))),
            Err(error) => Ok(Err(error)),
        }
    }

    fn fetch(&self, fetcher: &mut Option<Fetcher>, url: &str) -> Result<String, WorkerError> {
        let mut current = match fetcher.take() {
            Some(fetcher) => fetcher,
            None => Fetcher::start(&self.fetching)?,
        };
        let fetched = current.fetch(url, Some(self.timeout));
        if matches!(fetched, Ok(_) | Err(WorkerError::Fetch(_))) {
            *fetcher = Some(current);
        }
        fetched
    }
}
