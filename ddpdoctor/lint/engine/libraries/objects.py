"""Methods by which objects of many kinds are kept in files: of what class they are, few can tell.

`*.name` is a method of this name, whoever has it. Source: the documentation of transformers,
diffusers, PEFT, tokenizers, pandas, datasets and Matplotlib.
"""

EFFECTS = """
*.full_tensor           collective result=same
*.save_pretrained       event kind=write path=save_directory@0 by=is_main_process@ with=save_function@
*.from_pretrained       event kind=read path=pretrained_model_name_or_path@0
*.save_to_disk          event kind=write path=dataset_path@0
*.load_from_disk        event kind=read path=dataset_path@0
*.to_csv                event kind=write path=path_or_buf@0
*.to_json               event kind=write path=path_or_buf@0
*.to_parquet            event kind=write path=path@0
*.to_pickle             event kind=write path=path@0
*.to_feather            event kind=write path=path@0
*.savefig               event kind=write path=fname@0
"""

ENDS_A_LOOP = frozenset({"should_training_stop", "should_stop"})
"""Attributes by which a trainer is told to end its loop: transformers' control, Lightning's own."""
