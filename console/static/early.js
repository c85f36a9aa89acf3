// Keys that are pressed before the page's script is there wait for it. A classic script: it runs while the page is read.

const earlyKeys = [];
const noteEarlyKey = (event) => earlyKeys.push(event);
document.addEventListener("keydown", noteEarlyKey);

/** Give the waiting keys to the script of the page, and all later ones. */
window.takeKeys = (pressed) => {
  document.removeEventListener("keydown", noteEarlyKey);
  document.addEventListener("keydown", pressed);
  earlyKeys.forEach(pressed);
};
