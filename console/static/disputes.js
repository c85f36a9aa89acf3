// The page of disputes: a key presses the button, or follows the link, that displays the key.

import { isSingle, keysAreOn, keysOf } from "./keys.js";

const UNSEEN_MS = 250; // an earlier press was meant for the previous row

let readableAt = Infinity;
let isSent = false;

requestAnimationFrame(() =>
  setTimeout(() => {
    readableAt = performance.now() + UNSEEN_MS;
  }),
);

/** Whether a press counts. One that comes too early restarts the delay, so a double click or a held key does not count. */
function counts(event) {
  if (isSent) return false;
  if (event.timeStamp >= readableAt) return true;
  if (readableAt !== Infinity) readableAt = event.timeStamp + UNSEEN_MS;
  return false;
}

function target(key) {
  return [...document.querySelectorAll("[data-keys]")].find((each) => each.dataset.keys.split(" ").includes(key));
}

addEventListener("keydown", (event) => {
  if (!isSingle(event) || !keysAreOn()) return;
  const found = keysOf(event).map(target).find(Boolean);
  if (!found) return;
  event.preventDefault();
  if (!counts(event)) return;
  found.click();
});

addEventListener(
  "click",
  (event) => {
    if (event.detail === 0 || !event.target.closest("[data-keys]")) return; // a key, or not a button of a row
    if (!counts(event)) event.preventDefault();
  },
  true,
);

addEventListener("submit", (event) => {
  if (isSent) event.preventDefault();
  isSent = true;
});

addEventListener("pageshow", () => {
  isSent = false; // reset also when the browser goes back to this page
});
