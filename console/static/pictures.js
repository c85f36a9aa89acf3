// Pictures: each has the place of its own shape, and one that is shown much larger than it is has squares for pixels.

const COARSE = 2;

/** Give a picture that has come its shape, so that nothing empty follows it. */
export function fit(picture) {
  if (picture.naturalWidth === 0 || picture.classList.contains("fitted")) return;
  picture.style.setProperty("--ratio", picture.naturalWidth / picture.naturalHeight);
  picture.classList.add("fitted");
}

/** Show the pixels of a picture where they are large. */
export function sharpen(picture) {
  if (picture.naturalWidth === 0) return;
  fit(picture);
  const scale = Math.min(picture.clientWidth / picture.naturalWidth, picture.clientHeight / picture.naturalHeight);
  picture.classList.toggle("enlarged", scale >= COARSE);
}

/** Sharpen the pictures of a part of the page, now and as they load. */
export function sharpenIn(part) {
  part.addEventListener("load", (event) => event.target.matches("img") && sharpen(event.target), true);
  for (const each of part.querySelectorAll("img")) if (each.complete) sharpen(each);
}
