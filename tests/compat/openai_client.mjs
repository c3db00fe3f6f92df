// The client of OpenAI against the endpoints in its shape: node openai_client.mjs URL BASE. Prints what it saw as JSON.
import OpenAI from "openai";

const [url, base] = process.argv.slice(2);
const client = new OpenAI({ baseURL: url + "/v1", apiKey: "qk_none", maxRetries: 0 });

async function error(promise) {
    try {
        await promise;
        return null;
    } catch (failure) {
        return { status: failure.status, code: failure.code, message: failure.message };
    }
}

async function search(options) {
    const page = await client.vectorStores.search(base, { query: "tide", ...options });
    return page.data.map((hit) => ({ name: hit.filename, score: hit.score, attributes: hit.attributes, text: hit.content[0].text }));
}

const input = ["boats at high tide", "bread in the oven"];
const packed = await client.embeddings.create({ model: base, input }); // asks for base64, and reads it
const plain = await client.embeddings.create({ model: base, input, encoding_format: "float" });
const one = await client.embeddings.create({ model: base, input: input[1], encoding_format: "float" });
console.log(JSON.stringify({
    dimension: packed.data[0].embedding.length,
    indexes: packed.data.map((entry) => entry.index),
    same: packed.data.every((entry, i) => entry.embedding.every((x, j) => Math.abs(x - plain.data[i].embedding[j]) < 1e-6)),
    alone: one.data[0].embedding.every((x, j) => x === plain.data[1].embedding[j]),
    usage: packed.usage,
    tokens: await error(client.embeddings.create({ model: base, input: [1, 2, 3] })),
    empty: await error(client.embeddings.create({ model: base, input: "" })),
    unknown: await error(client.embeddings.create({ model: "no-such-model", input: "x" })),
    found: await search({}),
    several: await search({ query: ["tide", "boats"], max_num_results: 1 }),
    filtered: await search({ filters: { type: "and", filters: [
        { type: "eq", key: "town", value: "hamburg" }, { type: "gte", key: "year", value: 2020 }] } }),
    none: await search({ filters: { type: "in", key: "town", value: ["rome"] } }),
    badFilter: await error(search({ filters: { type: "like", key: "town", value: "x" } })),
    noStore: await error(client.vectorStores.search("nowhere", { query: "x" })),
}));
