// What the labelling page knows: where it is, what it shows, and what it holds.

export const by = (id) => document.getElementById(id);
const { dataset } = by("labelling");
export const { base, formToken, labeller } = dataset;
export const delayMs = Number(dataset.delay) * 1000;
export const unseenMs = Number(dataset.unseen) * 1000; // keys pressed sooner are no answer to a query
export const leaseMs = Number(dataset.lease) * 1000;
export const strict = dataset.strict !== "";

export const state = {
  current: null, // the article that is shown
  upcoming: [], // articles that nobody saw yet
  held: null, // the query that was left to correct an earlier answer
  gone: "", // why the query before is not here any more, said once with the next one
  latest: null, // { entry, article, ... }: the last answer
  correcting: false,
  paused: false,
  stopped: false,
  shownAt: 0,
  seenAt: Date.now(), // when somebody was here last
  outbox: null,
};
