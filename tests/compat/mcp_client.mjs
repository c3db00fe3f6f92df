// An agent's way through the tools with a client that is not ours: add, status, search, read, cite, delete.
// node mcp_client.mjs old|new|auto stdio PROGRAM DATA, or http URL. Prints what it saw as JSON.
import assert from "node:assert";

const [era, transport, ...rest] = process.argv.slice(2);
const TEXT = "# Harbour\n\nBoats may enter at high tide.\n\n## Fees\n\nTen coins a night, zwölf for the 東京 berth.\n";

async function connect() {
    const isOld = era === "old";
    const from = isOld ? "@modelcontextprotocol/sdk/client/" : "@modelcontextprotocol/client";
    const { Client } = await import(isOld ? from + "index.js" : from);
    const options = isOld ? {} : { versionNegotiation: { mode: era === "new" ? { pin: "2026-07-28" } : "auto" } };
    const client = new Client({ name: "test", version: "1" }, options);
    if (transport === "http") {
        const { StreamableHTTPClientTransport } = await import(isOld ? from + "streamableHttp.js" : from);
        await client.connect(new StreamableHTTPClientTransport(new URL(rest[0])));
    } else {
        const { StdioClientTransport } = await import(isOld ? from + "stdio.js" : from + "/stdio");
        const [command, data] = rest;
        await client.connect(new StdioClientTransport({ command, args: ["--data", data, "mcp"], env: process.env }));
    }
    return client;
}

async function call(client, name, args) {
    const result = await client.callTool({ name, arguments: args }); // checks the answer by the tool's output schema
    assert.ok(!result.isError, result.content[0].text);
    assert.deepStrictEqual(JSON.parse(result.content[0].text), result.structuredContent);
    return result.structuredContent;
}

const client = await connect();
const tools = (await client.listTools()).tools;
const added = await call(client, "quire_add", { text: TEXT, name: "harbour.md" });
const place = { base: added.base_id, item: added.item_id };
let status;
do {
    status = await call(client, "quire_status", place);
    assert.ok(status.status !== "failed", JSON.stringify(status));
} while (!status.searchable);
const hit = (await call(client, "quire_search", { query: "tide" })).hits[0];
const read = await call(client, "quire_read", { ...place, offset: hit.start, length: hit.end - hit.start });
assert.strictEqual(read.text, hit.text);
assert.strictEqual(Buffer.from(TEXT).subarray(hit.start, hit.end).toString(), hit.text);
const listed = await call(client, "quire_list", { base: added.base_id });
const short = await client.callTool({ name: "quire_search", arguments: { query: "tide", max_tokens: 300 } });
assert.ok(Buffer.byteLength(JSON.stringify(short)) <= 4 * 300);
const refused = await client.callTool({ name: "quire_read", arguments: { base: "nowhere", item: "x" } });
await assert.rejects(client.callTool({ name: "no_such_tool", arguments: {} }));
const gone = await call(client, "quire_delete", { base: added.base_id, items: [added.item_id] });
const left = await call(client, "quire_search", { query: "tide" });
console.log(JSON.stringify({
    server: client.getServerVersion()?.name,
    version: client.getNegotiatedProtocolVersion?.() ?? null,
    tools: tools.map((tool) => tool.name),
    destructive: tools.filter((tool) => tool.annotations.destructiveHint).map((tool) => tool.name),
    cited: { name: hit.name, heading: hit.heading, lines: [hit.line_start, hit.line_end], item: hit.item_id === added.item_id },
    listed: listed.items.map((item) => item.name),
    refused: { isError: refused.isError, text: refused.content[0].text },
    deleted: gone.count,
    left: left.hits.length,
}));
await client.close();
