// Queues keys pressed before the page's script has loaded. This is a classic script, so it runs while the page is parsed.

const earlyKeys = [];
const noteEarlyKey = (event) => earlyKeys.push(event);
document.addEventListener("keydown", noteEarlyKey);

/** Pass the queued keys, and all later ones, to the page's script. */
window.takeKeys = (pressed) => {
  document.removeEventListener("keydown", noteEarlyKey);
  document.addEventListener("keydown", pressed);
  earlyKeys.forEach(pressed);
};
