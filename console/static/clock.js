// Measures the time in which a query was visible and in focus, without the time in which the labeller was elsewhere.

let visibleMs = 0;
let visibleSince = null;

export function clockOn() {
  const on = document.visibilityState === "visible" && document.hasFocus();
  if (on && visibleSince === null) visibleSince = performance.now();
  if (!on && visibleSince !== null) {
    visibleMs += performance.now() - visibleSince;
    visibleSince = null;
  }
}

/** Restart: the query is visible from `seenAt` (of `performance.now()`) on. */
export function clockReset(seenAt) {
  visibleMs = 0;
  visibleSince = null;
  clockOn();
  if (visibleSince !== null) visibleSince = seenAt;
}

export function tookSeconds() {
  return (visibleMs + (visibleSince === null ? 0 : performance.now() - visibleSince)) / 1000;
}
