#include "http/client.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEAD_BYTES_MAX = 8192 };

static const char head_end[] = "\r\n\r\n";

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

int client_connect(unsigned port)
{
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&at, sizeof at) != 0) {
        fail("bench: connecting to the server");
    }
    return fd;
}

static bool send_all(int fd, const char *bytes, size_t size)
{
    while (size) {
        const ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
        if (sent <= 0) {
            return false;
        }
        bytes += sent;
        size -= (size_t)sent;
    }
    return true;
}

/* ---- answers ---- */

struct head {
    char text[HEAD_BYTES_MAX + 1]; /* and what of the body came with it */
    size_t len, body_at;
    int status;
};

static void read_head(int fd, struct head *head)
{
    const char *end = NULL;
    head->len = 0;
    while (!end) {
        const ssize_t got = recv(fd, head->text + head->len, HEAD_BYTES_MAX - head->len, 0);
        if (got <= 0) {
            fail("bench: reading an answer");
        }
        head->len += (size_t)got;
        head->text[head->len] = '\0';
        end = strstr(head->text, head_end);
    }
    head->body_at = (size_t)(end - head->text) + strlen(head_end);
    head->status = atoi(head->text + strlen("HTTP/1.1 "));
}

static size_t body_size(const struct head *head)
{
    const char *length = strcasestr(head->text, "\r\ncontent-length:");
    return length ? strtoul(length + strlen("\r\ncontent-length:"), NULL, 10) : 0;
}

static int read_answer(int fd, struct quire_response *ret_response)
{
    struct head head;
    read_head(fd, &head);
    const size_t size = body_size(&head);
    size_t have = head.len - head.body_at;
    char *body = qr_alloc(size + 1);
    if (!body || have > size) {
        fail("bench: the body of an answer");
    }
    memcpy(body, head.text + head.body_at, have);
    while (have < size) {
        const ssize_t got = recv(fd, body + have, size - have, 0);
        if (got <= 0) {
            fail("bench: reading the body of an answer");
        }
        have += (size_t)got;
    }
    body[size] = '\0';
    *ret_response = (struct quire_response){.status = head.status, .body = body, .body_size = size};
    return head.status;
}

/* ---- requests ---- */

int client_ask(int fd, const char *method, const char *path, const char *body, struct quire_response *ret_response)
{
    char head[1024];
    const size_t size = body ? strlen(body) : 0;
    const int len =
        snprintf(head, sizeof head,
                 "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                 method, path, size);
    if (!send_all(fd, head, (size_t)len) || !send_all(fd, body ? body : "", size)) {
        fail("bench: sending a request");
    }
    return read_answer(fd, ret_response);
}

int client_listen(unsigned port, const char *path)
{
    char request[1024];
    struct head head;
    const int fd = client_connect(port);
    const int len = snprintf(request, sizeof request,
                             "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n", path);
    if (!send_all(fd, request, (size_t)len)) {
        fail("bench: asking for events");
    }
    read_head(fd, &head);
    if (head.status == 200 && strcasestr(head.text, "text/event-stream")) {
        return fd;
    }
    close(fd);
    return -1;
}

/* ---- uploads ---- */

void client_fill(char block[static CLIENT_BLOCK_BYTES], unsigned seed)
{
    uint64_t state = seed + UINT64_C(1);
    for (size_t i = 0; i < CLIENT_BLOCK_BYTES; i += sizeof state) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        memcpy(block + i, &state, sizeof state);
    }
}

/* A server that refuses does not read on; its answer says why. */
static void send_file(int fd, size_t size_bytes, unsigned seed)
{
    static char block[CLIENT_BLOCK_BYTES];
    client_fill(block, seed);
    for (size_t sent = 0; sent < size_bytes;) {
        const size_t part = size_bytes - sent < sizeof block ? size_bytes - sent : sizeof block;
        if (!send_all(fd, block, part)) {
            return;
        }
        sent += part;
    }
}

int client_upload(unsigned port, const char *path, size_t size_bytes, unsigned seed)
{
    static const char part[] = "--bench\r\nContent-Disposition: form-data; name=\"f\"; filename=\"large.bin\"\r\n"
                               "Content-Type: application/octet-stream\r\n\r\n";
    static const char end[] = "\r\n--bench--\r\n";
    char head[1024];
    struct quire_response response;
    const int fd = client_connect(port);
    const int len =
        snprintf(head, sizeof head,
                 "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=bench\r\n"
                 "Content-Length: %zu\r\n\r\n%s",
                 path, strlen(part) + size_bytes + strlen(end), part);
    if (!send_all(fd, head, (size_t)len)) {
        fail("bench: beginning an upload");
    }
    send_file(fd, size_bytes, seed);
    (void)send_all(fd, end, strlen(end));
    const int status = read_answer(fd, &response);
    if (status >= 300) {
        fprintf(stderr, "bench: upload: %s\n", response.body);
    }
    quire_response_done(&response);
    close(fd);
    return status;
}
