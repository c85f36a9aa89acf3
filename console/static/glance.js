// A press answers a query only if it could be read before: it has been visible for a while, without other presses.

import { state, unseenMs } from "./state.js";

const INTERRUPTED_MS = 2000;
const MODIFIERS = new Set(["Shift", "Control", "Alt", "AltGraph", "Meta", "CapsLock"]);

let readableAt = Infinity; // time from which presses count
let isEarly = false; // the current press began earlier
let isInterrupted = false;
let sheetReadableAt = 0; // time from which pointers count in the opened sheet
let isStray = false; // the current press closes a sheet, or was meant for something that the sheet covers

/** The query disappeared by itself, perhaps while the labeller is typing: the next one waits longer without presses. */
export function interruptTyping() {
  isInterrupted = document.activeElement?.matches("input:not([type=checkbox])") ?? false;
}

/** Time at which the page was first painted with its query; undefined if not yet. */
export function paintedAt() {
  const [paint] = performance.getEntriesByName("first-contentful-paint");
  const [{ domInteractive }] = performance.getEntriesByType("navigation");
  return paint && Math.max(paint.startTime, domInteractive);
}

/**
 * A query is put on the page: presses count some time after it was painted.
 * @param seenAt time at which it was painted, if it was already visible
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

/** Record a press of a key, a button or a finger. One that comes too early restarts the delay: a double click, a held key. */
export function notePress(event) {
  if (MODIFIERS.has(event.key)) return;
  isEarly = event.timeStamp < readableAt;
  if (event.type === "pointerdown") {
    const open = [...document.querySelectorAll(":popover-open")];
    isStray = open.length > 0 && (event.timeStamp < sheetReadableAt || !open.some((each) => each.contains(event.target)));
  } else isStray = false;
  if (isEarly) readableAt = Math.max(readableAt, event.timeStamp + unseenMs);
}

/** A sheet opens under the finger: the second tap of a double tap must not choose anything in it. */
export function noteSheet(event) {
  if (event.newState === "open" && event.target.matches("[popover]")) sheetReadableAt = performance.now() + unseenMs;
}

/** Cancel the click of a press that closes a sheet, or comes too early in it. */
export function stopStray(event) {
  if (!isStray || event.detail === 0) return;
  isStray = false;
  event.preventDefault();
  event.stopImmediatePropagation();
}

/** Whether the current action was meant for something that was on the page before. */
export function isUnseen() {
  const early = isEarly || performance.now() < readableAt;
  isEarly = false;
  return early;
}
