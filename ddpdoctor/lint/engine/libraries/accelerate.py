"""Hugging Face accelerate. Source: its documentation and signatures (1.x)."""

EFFECTS = """
accelerate.Accelerator                                  new type=accelerate.Accelerator steps=gradient_accumulation_steps@3 cpu=cpu@4 plan=gradient_accumulation_plugin@
accelerate.accelerator.Accelerator                      new type=accelerate.Accelerator steps=gradient_accumulation_steps@3 cpu=cpu@4 plan=gradient_accumulation_plugin@
accelerate.PartialState                                 new type=accelerate.PartialState
accelerate.state.PartialState                           new type=accelerate.PartialState
accelerate.state.AcceleratorState                       new type=accelerate.PartialState
accelerate.DataLoaderConfiguration                      new type=accelerate.utils.DataLoaderConfiguration
accelerate.utils.DataLoaderConfiguration                new type=accelerate.utils.DataLoaderConfiguration
accelerate.Accelerator.prepare                          prepares
accelerate.Accelerator.prepare_model                    prepares
accelerate.Accelerator.prepare_data_loader              prepares
accelerate.Accelerator.prepare_optimizer                prepares
accelerate.Accelerator.prepare_scheduler                prepares
accelerate.Accelerator.unwrap_model                     event kind=unwrap model=model@0 result=unwrap
accelerate.Accelerator.backward                         event kind=backward loss=loss@0
accelerate.Accelerator.clip_grad_norm_                  event kind=clip parameters=parameters@0 result=pure
accelerate.Accelerator.clip_grad_value_                 event kind=clip parameters=parameters@0
accelerate.Accelerator.unscale_gradients                event kind=unscale
accelerate.Accelerator.accumulate                       enters scope=accumulate
accelerate.Accelerator.no_sync                          enters scope=no_sync
accelerate.Accelerator.autocast                         enters scope=autocast
accelerate.Accelerator.join_uneven_inputs               enters scope=join
accelerate.Accelerator.main_process_first               enters scope=main_first
accelerate.Accelerator.local_main_process_first         enters scope=main_first
accelerate.Accelerator.split_between_processes          enters scope=split
accelerate.Accelerator.wait_for_everyone                collective op=wait_for_everyone
accelerate.Accelerator.gather                           collective op=gather result=same gives=tensor@0
accelerate.Accelerator.gather_for_metrics               collective op=gather_for_metrics result=same gives=input_data@0
accelerate.Accelerator.reduce                           collective op=reduce result=same adds=tensor@0 reduce=reduction@1
accelerate.Accelerator.pad_across_processes             collective op=pad_across_processes
accelerate.Accelerator.save_state                       event kind=save_state path=output_dir@0
accelerate.Accelerator.load_state                       event kind=load path=input_dir@0 result=same
accelerate.Accelerator.register_save_state_pre_hook     hook of=accelerate.Accelerator.save_state hands=models,weights,path
accelerate.Accelerator.register_load_state_pre_hook     hook of=accelerate.Accelerator.load_state hands=models,path
accelerate.Accelerator.save                             event kind=save_on_main object=obj@0 path=f@1
accelerate.Accelerator.save_model                       event kind=save_on_main
accelerate.Accelerator.get_state_dict                   pure
accelerate.Accelerator.check_trigger                    collective op=check_trigger result=same
accelerate.Accelerator.set_trigger                      same
accelerate.Accelerator.on_main_process                  calls_on_main
accelerate.Accelerator.on_local_main_process            calls_on_main
accelerate.Accelerator.on_process                       calls_on_main
accelerate.Accelerator.on_last_process                  calls_on_main
accelerate.Accelerator.is_main_process                  main
accelerate.Accelerator.is_local_main_process            local_main
accelerate.Accelerator.is_last_process                  rank
accelerate.Accelerator.process_index                    rank
accelerate.Accelerator.local_process_index              local_rank
accelerate.Accelerator.num_processes                    world
accelerate.Accelerator.sync_gradients                   same
accelerate.Accelerator.device                           local_rank
accelerate.Accelerator.state                            part type=accelerate.PartialState
accelerate.Accelerator.print                            same
accelerate.Accelerator.log                              same
accelerate.Accelerator.end_training                     same
accelerate.Accelerator.init_trackers                    same
accelerate.Accelerator.register_for_checkpointing       same
accelerate.Accelerator.free_memory                      same
accelerate.PartialState.wait_for_everyone               collective op=wait_for_everyone
accelerate.PartialState.is_main_process                 main
accelerate.PartialState.is_local_main_process           local_main
accelerate.PartialState.process_index                   rank
accelerate.PartialState.local_process_index             local_rank
accelerate.PartialState.num_processes                   world
accelerate.PartialState.main_process_first              enters scope=main_first
accelerate.PartialState.local_main_process_first        enters scope=main_first
accelerate.PartialState.on_main_process                 calls_on_main
accelerate.utils.wait_for_everyone                      collective
accelerate.utils.gather                                 collective result=same gives=tensor@0
accelerate.utils.gather_object                          collective result=same tells=object@0
accelerate.utils.broadcast                              collective result=same
accelerate.utils.broadcast_object_list                  collective shares=object_list@0 result=same
accelerate.utils.reduce                                 collective result=same adds=tensor@0
accelerate.utils.pad_across_processes                   collective
accelerate.utils.set_seed                               event kind=seed_all seed=seed@0 by_rank=device_specific@1
accelerate.utils.is_main_process                        main
accelerate.notebook_launcher                            spawns target=function@0 arguments=args@1 processes=num_processes@2
"""
