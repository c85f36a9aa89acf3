// A press answers a query that could be read before it: the query is there for a while, and the hands are at rest.

import { state, unseenMs } from "./state.js";

const INTERRUPTED_MS = 2000;
const MODIFIERS = new Set(["Shift", "Control", "Alt", "AltGraph", "Meta", "CapsLock"]);

let readableAt = Infinity; // from here on a press counts
let isEarly = false; // the press that goes on now began before
let isInterrupted = false;
let sheetReadableAt = 0; // from here on a pointer counts in the sheet that opened
let isStray = false; // the press that goes on now closes a sheet, or was meant for what the sheet covers

/** The query went away by itself. Whoever types into it types on: the next one waits longer for hands at rest. */
export function interruptTyping() {
  isInterrupted = document.activeElement?.matches("input:not([type=checkbox])") ?? false;
}

/** When the page was painted as the console sent it, with its query; undefined: it was not yet. */
export function paintedAt() {
  const [paint] = performance.getEntriesByName("first-contentful-paint");
  const [{ domInteractive }] = performance.getEntriesByType("navigation");
  return paint && Math.max(paint.startTime, domInteractive);
}

/**
 * A query is put on the page: it can be read when it is painted, and some time later.
 * @param seenAt when it was painted, if it was there before
 */
export function startGlance(seenAt) {
  const shown = state.current;
  const restMs = isInterrupted ? INTERRUPTED_MS : unseenMs;
  isInterrupted = false;
  readableAt = Infinity;
  isEarly = false;
  if (seenAt !== undefined) readableAt = seenAt + restMs;
  else requestAnimationFrame(() =>
    setTimeout(() => {
      if (state.current === shown) readableAt = performance.now() + restMs;
    }),
  );
}

/** Note a press of a key, a button or a finger. One that comes too early delays those after it: a double click, a held key. */
export function notePress(event) {
  if (MODIFIERS.has(event.key)) return;
  isEarly = event.timeStamp < readableAt;
  if (event.type === "pointerdown") {
    const open = [...document.querySelectorAll(":popover-open")];
    isStray = open.length > 0 && (event.timeStamp < sheetReadableAt || !open.some((each) => each.contains(event.target)));
  } else isStray = false;
  if (isEarly) readableAt = Math.max(readableAt, event.timeStamp + unseenMs);
}

/** A sheet opens under the finger: the second of two taps chooses nothing in it. */
export function noteSheet(event) {
  if (event.newState === "open" && event.target.matches("[popover]")) sheetReadableAt = performance.now() + unseenMs;
}

/** Stop the click of a press that closes a sheet, or comes too early in it. */
export function stopStray(event) {
  if (!isStray || event.detail === 0) return;
  isStray = false;
  event.preventDefault();
  event.stopImmediatePropagation();
}

/** Whether what is done now was meant for something that was on the page before. */
export function isUnseen() {
  const early = isEarly || performance.now() < readableAt;
  isEarly = false;
  return early;
}
