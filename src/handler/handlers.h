/* The handlers, one file each. */
#pragma once

#include "handler/context.h"

qr_handler_fn qr_handle_prepare_root;
qr_handler_fn qr_handle_process_document;
qr_handler_many_fn qr_handle_process_documents;
qr_handler_fn qr_handle_check_file_processing;
qr_handler_fn qr_handle_chunk_document;
qr_handler_fn qr_handle_index_chunks;
qr_handler_stream_fn qr_handle_index_chunks_stream;
qr_handler_fn qr_handle_analyze_asset;
qr_handler_fn qr_handle_refresh_source;
qr_handler_fn qr_handle_reindex_subtree;
qr_handler_fn qr_handle_restore_base;
qr_handler_fn qr_handle_delete_subtree;
qr_handler_fn qr_handle_delete_base;
qr_handler_fn qr_handle_purge;
qr_handler_fn qr_handle_build_vectors;
