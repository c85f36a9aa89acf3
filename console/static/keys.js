// Identifies pressed keys, and decides whether they count.

const SETTING = "quercus-keys";

/** The possible keys of an event, likeliest first; digits also by position, since some keyboards need Shift for digits. */
export function keysOf(event) {
  const digit = /^(?:Digit|Numpad)([0-9])$/.exec(event.code);
  return digit && !event.shiftKey ? [digit[1], event.key] : [event.key];
}

/** Whether an event is a single key for the page: not a shortcut, a repeat, or input to a field. */
export function isSingle(event) {
  const field = event.target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]");
  return !(event.ctrlKey || event.altKey || event.metaKey || event.repeat || event.isComposing || field);
}

/** Single keys can be switched off, since speech input and tremor can trigger them by accident (WCAG 2.1.4). */
export function keysAreOn() {
  return localStorage.getItem(SETTING) !== "off";
}

export function switchKeys(on) {
  localStorage.setItem(SETTING, on ? "on" : "off");
}
