// Unsent answers in this browser's storage: they survive the page, its tab and the browser.
//
// An answer belongs to a page, and only that page sends it. A page holds a lock while it is open; a page that gets the
// lock of another takes over its answers, in one transaction, so that no two pages send the same.

const DATABASE = "quercus";
const STORE = "unsent";

let database = null;
let page = "";

function settled(request) {
  return new Promise((done, failed) => {
    request.onsuccess = () => done(request.result);
    request.onerror = request.onblocked = () => failed(request.error);
  });
}

async function connect() {
  const request = indexedDB.open(DATABASE, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "number", autoIncrement: true });
  return settled(request);
}

/** Run work on the store in one transaction; return its result once it is on the disk. */
async function write(work) {
  const transaction = database.transaction(STORE, "readwrite", { durability: "strict" });
  const ended = new Promise((done, failed) => {
    transaction.oncomplete = done;
    transaction.onabort = transaction.onerror = () => failed(transaction.error);
  });
  const result = work(transaction.objectStore(STORE));
  await ended;
  return result;
}

const lockOf = (owner) => `quercus-page-${owner}`;

/** Prepare the store for this page; fails if the browser stores nothing. */
export async function openStore() {
  page = crypto.randomUUID();
  await new Promise((done, failed) => {
    navigator.locks.request(lockOf(page), () => new Promise(() => done())).catch(failed); // held until the page is closed
  });
  database = await connect();
  database.onversionchange = () => database.close();
}

/** Keep an entry; return its number. */
export async function keep(entry) {
  return (await write((store) => store.put({ ...entry, page }))).result;
}

export function forget(number) {
  return write((store) => store.delete(number));
}

/** Take over a labeller's answers from closed pages, in the order in which they were given. */
export async function takeOver(labeller) {
  const others = (await everything()).filter((each) => each.labeller === labeller && each.page !== page);
  const taken = [];
  for (const owner of new Set(others.map((each) => each.page))) {
    await navigator.locks.request(lockOf(owner), { ifAvailable: true }, async (lock) => {
      if (lock !== null) taken.push(...(await takeFrom(owner, labeller))); // otherwise that page is open, and sends them
    });
  }
  return taken.sort((one, other) => one.number - other.number);
}

async function takeFrom(owner, labeller) {
  const taken = [];
  await write((store) => {
    store.openCursor().onsuccess = (event) => {
      const cursor = event.target.result;
      if (cursor === null) return;
      if (cursor.value.page === owner && cursor.value.labeller === labeller) {
        taken.push({ ...cursor.value, page });
        cursor.update({ ...cursor.value, page });
      }
      cursor.continue();
    };
  });
  return taken;
}

async function everything() {
  return settled(database.transaction(STORE).objectStore(STORE).getAll());
}

/** All entries in this browser, for a page that does not send any. */
export async function readUnsent() {
  try {
    database ??= await connect();
    return await everything();
  } catch {
    return []; // the browser stores nothing
  }
}
