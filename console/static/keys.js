// Which key was pressed, and whether it counts.

const SETTING = "quercus-keys";

/** What an event may mean, the likeliest first: a digit by its place, since some keyboards want Shift for digits. */
export function keysOf(event) {
  const digit = /^(?:Digit|Numpad)([0-9])$/.exec(event.code);
  return digit && !event.shiftKey ? [digit[1], event.key] : [event.key];
}

/** Whether an event is a single key for the page: no shortcut, no repeat, nothing that is typed into a field. */
export function isSingle(event) {
  const field = event.target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]");
  return !(event.ctrlKey || event.altKey || event.metaKey || event.repeat || event.isComposing || field);
}

/** Single keys can be switched off: speech input and tired fingers press them by accident (WCAG 2.1.4). */
export function keysAreOn() {
  return localStorage.getItem(SETTING) !== "off";
}

export function switchKeys(on) {
  localStorage.setItem(SETTING, on ? "on" : "off");
}
